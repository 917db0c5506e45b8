import {
  QuotaLedger,
  type QuotaCall,
  type QuotaLimits,
  type QuotaReply,
} from '../../algorithms/quota/index.js';
import { type Clock } from '../../common/clock.js';
import { type QuotaStore } from '../quota-store.js';

/** The ledger of a cluster that is one process. */
export class MemoryQuota implements QuotaStore {
  readonly ledger: QuotaLedger;

  constructor(
    limits: QuotaLimits,
    private readonly clock: Pick<Clock, 'now'>,
  ) {
    this.ledger = new QuotaLedger(limits);
  }

  settle(call: QuotaCall): QuotaReply {
    return this.ledger.settle(this.clock.now(), call);
  }
}
