import { type Limit } from '../algorithms/limit.js';
import { SLOT_MICROS } from './demand-estimate.js';
import { type KeyLease } from './key-lease.js';
import { EARNING, HEADROOM, keyHorizonMicros } from './lease-figures.js';

/** Before that the mean says little. */
const SETTLING_MICROS = 4 * SLOT_MICROS;

/** How many tokens of a key are worth holding, by its demand and the number of nodes. */
export class LeaseSizing {
  /** How far ahead tokens are taken: a quarter of the time in which the bucket fills. */
  readonly horizonMicros: number;

  constructor(
    private readonly limit: Limit,
    private readonly fleet: { readonly nodes: number },
  ) {
    this.horizonMicros = keyHorizonMicros(limit);
  }

  /** Tokens worth having here. Less than one request needs would only be kept from others. */
  targetOf(lease: KeyLease, now: number): number {
    const ahead = (this.demandOf(lease, now) * this.horizonMicros) / 1_000_000;
    const most = this.most();
    if (ahead < 1 || Math.min(ahead, most) < lease.leastCost) return 0;
    return Math.min(most, Math.ceil(ahead * HEADROOM));
  }

  /** A few requests in a slot that has just begun are chance, except of a key that is new. */
  private demandOf({ demand, leastCost, openedAt }: KeyLease, now: number): number {
    const rising = demand.risingRate(now);
    const isNew = now - openedAt < SLOT_MICROS;
    return isNew || demand.recent(now) >= EARNING * leastCost ? rising : demand.peak;
  }

  /**
   * By the mean, because the peak of a key that comes now and then is far above what it needs. Well
   * below what earns a lease, so that a key near the edge does not come and go.
   */
  hasCooled(lease: KeyLease, now: number): boolean {
    if (now - lease.openedAt < SETTLING_MICROS) return false;
    return (lease.demand.mean * this.horizonMicros) / 1_000_000 < lease.leastCost / 2;
  }

  /** However hot a key is, half of its bucket stays in the store for nodes that join. */
  most(): number {
    return Math.floor(this.limit.capacity / (2 * this.fleet.nodes));
  }
}
