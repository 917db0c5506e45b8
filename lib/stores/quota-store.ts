import { type QuotaCall, type QuotaReply, type QuotaStatus } from '../algorithms/quota/index.js';

/** Where the cluster's ledger is kept. */
export interface QuotaStore {
  /**
   * Settles a node's call. May answer at once; else the promise settles no later than the store's
   * deadline, and rejects with a StoreUnavailableError if there was no answer.
   */
  settle(call: QuotaCall): QuotaReply | Promise<QuotaReply>;
}

/** A ledger that also tells how things stand. */
export interface QuotaOverview {
  status(): Promise<QuotaStatus>;
}
