import { QuotaLedger } from '../../../algorithms/quota/quota-ledger.js';
import { compileQuota, type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import { type QuotaCall } from '../../../algorithms/quota/quota-protocol.js';
import { type VirtualTime } from './virtual-time.js';

/** Settles the same calls as the primary, each of them one lag later. */
export class LaggingReplica {
  private readonly ledger: QuotaLedger;
  private isPromoted = false;

  constructor(
    figures: QuotaFigures,
    private readonly time: VirtualTime,
    private readonly lagSeconds: number,
  ) {
    this.ledger = new QuotaLedger(compileQuota(figures));
  }

  follow(now: number, call: QuotaCall): void {
    this.time.after(this.lagSeconds * 1000, () => {
      if (!this.isPromoted) this.ledger.settle(now, call);
    });
  }

  promote(): QuotaLedger {
    this.isPromoted = true;
    return this.ledger;
  }
}
