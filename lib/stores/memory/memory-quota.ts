import {
  QuotaLedger,
  type QuotaCall,
  type QuotaLimits,
  type QuotaReply,
  type QuotaStatus,
} from '../../algorithms/quota/index.js';
import { type Clock } from '../../common/clock.js';
import { type QuotaOverview, type QuotaStore } from '../quota-store.js';

/** The ledger of a cluster that is one process. */
export class MemoryQuota implements QuotaStore, QuotaOverview {
  readonly ledger: QuotaLedger;

  constructor(
    limits: QuotaLimits,
    private readonly clock: Pick<Clock, 'now' | 'epochMs'>,
  ) {
    this.ledger = new QuotaLedger(limits);
  }

  settle(call: QuotaCall): QuotaReply {
    return this.ledger.settle(this.clock.now(), call);
  }

  /** The ledger counts on the process's own clock; what is told is told in wall-clock time. */
  status(): Promise<QuotaStatus> {
    const status = this.ledger.status();
    const asOfMs = status.asOfMs === 0 ? 0 : Math.floor(this.clock.epochMs(status.asOfMs * 1000));
    return Promise.resolve({ ...status, asOfMs });
  }
}
