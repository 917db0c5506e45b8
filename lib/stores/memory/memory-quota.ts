import { QuotaLedger } from '../../algorithms/quota/quota-ledger.js';
import { compileQuota, numbered, type QuotaFigures } from '../../algorithms/quota/quota-limits.js';
import { type QuotaCall, type QuotaReply } from '../../algorithms/quota/quota-protocol.js';
import { type QuotaStatus } from '../../algorithms/quota/quota-status.js';
import { type Clock } from '../../common/clock.js';
import {
  type NodesHeard,
  type QuotaLimitsStore,
  type QuotaMembers,
  type QuotaOverview,
  type QuotaStore,
} from '../quota-store.js';

/** The ledger of a cluster that is one process. */
export class MemoryQuota implements QuotaStore, QuotaLimitsStore, QuotaMembers, QuotaOverview {
  readonly ledger: QuotaLedger;
  private names: readonly string[];

  constructor(
    figures: QuotaFigures,
    private readonly clock: Pick<Clock, 'now' | 'epochMs'>,
  ) {
    this.ledger = new QuotaLedger(compileQuota(figures));
    this.names = figures.apps.map(({ app }) => app);
  }

  apply(figures: QuotaFigures, revision: number): void {
    const names = figures.apps.map(({ app }) => app);
    this.names = numbered(this.names, names);
    this.ledger.change(this.clock.now(), compileQuota(figures, this.names, revision));
  }

  settle(call: QuotaCall): QuotaReply {
    return this.ledger.settle(this.clock.now(), call);
  }

  /** There is only this process. */
  join(_member: string, _apps: readonly string[] | undefined, heard: NodesHeard): void {
    heard(() => 1, true);
  }

  serve(): void {}

  leave(): Promise<void> {
    return Promise.resolve();
  }

  /** The ledger counts on the process's own clock; its status is in wall-clock time. */
  status(): Promise<QuotaStatus> {
    const status = this.ledger.status();
    const asOfMs = status.asOfMs === 0 ? 0 : Math.floor(this.clock.epochMs(status.asOfMs * 1000));
    return Promise.resolve({ ...status, asOfMs });
  }
}
