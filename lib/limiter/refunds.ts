import { type Clock } from '../common/clock.js';
import { CallKind, type RemoteStore } from '../stores/index.js';
import { type Asked } from './asked.js';
import { type Decision, type DecisionSource } from './decision.js';
import { ask } from './question.js';
import { type QuotaBook } from './quota-book.js';
import { type QuotaRequest } from './rate-limiter.js';
import { type BoundCheck } from './remembered-denial.js';
import { type WaitingLines } from './waiting-lines.js';

/** Puts tokens back where they were taken from, and wakes those who wait for them. */
export class Refunds {
  constructor(
    private readonly quotaBook: QuotaBook | undefined,
    private readonly remote: RemoteStore | undefined,
    private readonly lines: WaitingLines,
    private readonly clock: Clock,
  ) {}

  refund({ checks, quotas }: Asked): void | Promise<void> {
    this.refundQuotas(quotas, []);
    return this.refundChecks(checks);
  }

  /**
   * What `acquire` took for a caller that is gone. A policy that only watches may have given
   * nothing, and a fallback gave nothing that the store could take back.
   */
  giveBack({ checks, quotas }: Asked, decision: Decision): void {
    const sourceOf = ({ policy }: BoundCheck['shared']): DecisionSource => {
      return (decision.decisions?.find((part) => part.policy === policy) ?? decision).source;
    };
    const taken = checks.filter(({ shared }) => !shared.shadow && sourceOf(shared) !== 'fallback');
    // Quotas are asked first, so their decisions are the first.
    this.refundQuotas(quotas, decision.decisions ?? [decision]);
    if (taken.length > 0) void this.refundChecks(taken);
  }

  /** With the decisions on them, as far as they are known: a share gets back what it gave. */
  refundQuotas(quotas: readonly QuotaRequest[], decisions: readonly Decision[]): void {
    for (const [i, quota] of quotas.entries()) {
      this.quotaBook?.giveBack(quota, decisions[i]?.source);
    }
    this.lines.wakeQuotas(quotas);
  }

  private refundChecks(checks: readonly BoundCheck[]): void | Promise<void> {
    const now = this.clock.now();
    const elsewhere = checks.filter(({ shared, key, cost }) => {
      // The limit may have changed since the tokens were taken, but the bucket is the same.
      shared.latest().denials.forget(key);
      shared.table?.refund(key, cost, now);
      return shared.table === undefined && shared.leases?.putBack(key, cost, now) !== true;
    });
    if (elsewhere.length === 0 || this.remote === undefined) return this.lines.wake(checks);
    return ask(this.remote, CallKind.Refund, elsewhere).then(() => this.lines.wake(checks));
  }
}
