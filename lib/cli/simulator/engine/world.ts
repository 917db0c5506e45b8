import { type QuotaSettings } from '../../../limiter/quota-options.js';
import { Network } from './network.js';
import { seededRandom } from './seeded-random.js';
import { SimulatedStore } from './simulated-store.js';
import { VirtualTime } from './virtual-time.js';

/** The longest wait of a decision for the store, as in the limiter's defaults. */
export const DECISION_TIMEOUT_MS = 20;

/** Everything that the nodes of one run share. */
export class World {
  readonly time = new VirtualTime();
  readonly network: Network;
  readonly store: SimulatedStore;
  /** For the nodes' own jitter; arrivals have another, so that every contender gets the same. */
  readonly random: () => number;

  constructor(
    readonly quota: QuotaSettings,
    /** Nodes that were planned for; what a fixed split divides by. */
    readonly plannedNodes: number,
    seed: number,
  ) {
    this.random = seededRandom(seed + 1);
    this.network = new Network(this.time, seededRandom(seed + 2), DECISION_TIMEOUT_MS);
    this.store = new SimulatedStore(quota.figures, this.time, this.network);
  }
}
