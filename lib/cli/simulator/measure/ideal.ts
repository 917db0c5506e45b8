import { QuotaLedger } from '../../../algorithms/quota/quota-ledger.js';
import { compileQuota, type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import { DemandEstimate } from '../../../local/demand-estimate.js';

const MICROS = 1_000_000;

/**
 * A bucket of `rate` tokens per second that holds up to `depth`, is full at first, and sees every
 * request at once. Kept apart from the library's own arithmetic on purpose: it is what that is
 * measured against.
 */
export class IdealBucket {
  private level: number;
  private last = 0;

  constructor(
    private readonly rate: number,
    private readonly depth: number,
  ) {
    this.level = depth;
  }

  take(cost: number, second: number): boolean {
    this.level = Math.min(this.depth, this.level + (second - this.last) * this.rate);
    this.last = second;
    if (this.level < cost) return false;
    this.level -= cost;
    return true;
  }
}

/**
 * The ledger itself without network or leases: one node that sees every request, and asks for each.
 * The measure for figures with several apps, ceilings and credits, which one bucket knows nothing of.
 */
export class IdealLedger {
  private readonly ledger: QuotaLedger;
  private readonly demands: readonly DemandEstimate[];
  private seq = 0;

  constructor(figures: QuotaFigures) {
    this.ledger = new QuotaLedger(compileQuota(figures));
    this.demands = figures.apps.map(() => new DemandEstimate());
  }

  take(cost: number, second: number, app: number): boolean {
    const now = (second + 1) * MICROS;
    const estimate = this.demands[app]!;
    estimate.add(cost, now);
    const demand = Math.round(estimate.mean);
    const call = { app, used: 0, returned: 0, demand, needs: [{ cost, count: 1 }], want: 0 };
    const reply = this.ledger.settle(now, {
      node: 'ideal',
      incarnation: '1',
      seq: ++this.seq,
      seenEpoch: 0,
      seenSequence: 0,
      leaving: false,
      apps: [call],
    });
    return reply.apps[0]!.needs[0] === 1;
  }
}
