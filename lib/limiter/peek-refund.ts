import { AlgorithmCode } from '../algorithms/limit.js';
import { type Clock } from '../common/clock.js';
import { CallKind, GiveBackLate, type RemoteStore } from '../stores/remote-store.js';
import { type SplitRequest } from './asked.js';
import { type Decision } from './decision.js';
import { callStore } from './question.js';
import { type QuotaRegistry } from './quota-registry.js';
import { type QuotaRequest } from './rate-limiter.js';
import { type BoundCheck } from './remembered-denial.js';
import { type WaitingLines } from './waiting-lines.js';

/** By so much the wall clock and the monotonic one differ from one look to the next. */
const WALL_CLOCK_MICROS = 2000;

/** Puts tokens back where they were taken from, and wakes those who wait for them. */
export class Refunds {
  constructor(
    private readonly quotaBook: QuotaRegistry | undefined,
    private readonly remote: RemoteStore | undefined,
    private readonly lines: WaitingLines,
    private readonly clock: Clock,
  ) {}

  refund({ checks, quotas }: SplitRequest, decision?: Decision): void | Promise<void> {
    if (decision === undefined) {
      this.refundQuotas(quotas, []);
      return this.refundChecks(checks);
    }
    this.refundQuotas(quotas, decision.decisions ?? [decision]);
    return this.refundChecks(this.refundShares(checks, decision), decision);
  }

  /** What `acquire` took for a caller that is gone. A policy that only watches may have given nothing. */
  giveBack({ checks, quotas }: SplitRequest, decision: Decision): void {
    const taken = checks.filter(({ limit }) => !limit.shadow);
    // Quotas are asked first, so their decisions are the first.
    this.refundQuotas(quotas, decision.decisions ?? [decision]);
    const others = this.refundLate(this.refundShares(taken, decision), decision);
    if (others.length > 0) void this.refundChecks(others, decision);
  }

  /**
   * The answer of the store may have come a while after the take. What has flowed in since has made
   * good for the tokens already, so only the rest goes back. Returns what the store did not decide.
   */
  private refundLate(checks: readonly BoundCheck[], decision: Decision): readonly BoundCheck[] {
    const { remote } = this;
    const byStore = checks.filter((check) => partOn(check, decision).source === 'store');
    if (byStore.length === 0 || remote === undefined) return checks;
    const takenAtMicros = takenInStoreAt(byStore[0]!, decision);
    for (const { limit, key } of byStore) limit.latest().denials.forget(key);
    remote.submit(new GiveBackLate(byStore, takenAtMicros));
    this.lines.wake(byStore);
    return checks.filter((check) => !byStore.includes(check));
  }

  /**
   * Tokens that the store never gave must not go there, but back to the share that gave them. What
   * passed by another failure mode was given by nobody. Returns the rest.
   */
  private refundShares(checks: readonly BoundCheck[], decision: Decision): readonly BoundCheck[] {
    const now = this.clock.now();
    const byFallback = checks.filter((check) => partOn(check, decision).source === 'fallback');
    if (byFallback.length === 0) return checks;
    for (const { limit, key, cost } of byFallback) {
      if (limit.failureMode !== 'local') continue;
      limit.fallbackTable(this.remote?.nodes ?? 1).refund(key, cost, now);
      limit.latest().owed?.putBack(key, cost);
    }
    this.lines.wake(byFallback);
    return checks.filter((check) => !byFallback.includes(check));
  }

  /** With the decisions on them, as far as they are known: a share gets back what it gave. */
  refundQuotas(quotas: readonly QuotaRequest[], decisions: readonly Decision[]): void {
    for (const [i, quota] of quotas.entries()) {
      this.quotaBook?.giveBack(quota, decisions[i]?.source);
    }
    this.lines.wakeQuotas(quotas);
  }

  private refundChecks(checks: readonly BoundCheck[], decision?: Decision): void | Promise<void> {
    const { clock, remote } = this;
    const now = clock.now();
    const elsewhere = checks.filter((check) => {
      const { limit, key, cost } = check;
      // The limit may have changed since the tokens were taken, but the bucket is the same.
      limit.latest().denials.forget(key);
      limit.table?.refund(key, cost, now, decision && takenHereAt(check, decision, clock));
      return limit.table === undefined && limit.leases?.putBack(key, cost, now) !== true;
    });
    if (elsewhere.length === 0 || remote === undefined) return this.lines.wake(checks);
    return this.refundInStore(elsewhere, remote, decision).then(() => this.lines.wake(checks));
  }

  /** A window takes tokens back where it has counted them, if it is known when it did. */
  private refundInStore(
    checks: readonly BoundCheck[],
    remote: RemoteStore,
    decision: Decision | undefined,
  ): Promise<unknown> {
    const isPlaced = (check: BoundCheck): boolean =>
      check.limit.figures.algorithm === AlgorithmCode.SlidingWindow &&
      decision !== undefined &&
      partOn(check, decision).source === 'store';
    const placed = checks.filter(isPlaced);
    if (placed.length === 0) return callStore(remote, CallKind.Refund, checks);
    const others = checks.filter((check) => !isPlaced(check));
    const takenAtMicros = takenInStoreAt(placed[0]!, decision!);
    return Promise.all([
      callStore(remote, CallKind.LateRefund, placed, takenAtMicros),
      others.length > 0 && callStore(remote, CallKind.Refund, others),
    ]);
  }
}

/** What was decided on one of the checks. */
function partOn({ limit }: BoundCheck, decision: Decision): Decision {
  return decision.decisions?.find(({ policy }) => policy === limit.policy) ?? decision;
}

/** When that was taken, on the store's clock. */
function takenInStoreAt(check: BoundCheck, decision: Decision): number {
  return Math.round(partOn(check, decision).timestampMs * 1000);
}

/**
 * When that was taken, on the clock of this process; a little before, because the instant of a
 * decision is of the wall clock, which drifts against it. Undefined if the wall clock has stepped back.
 */
function takenHereAt(check: BoundCheck, decision: Decision, clock: Clock): number | undefined {
  const now = clock.now();
  const agoMicros = (clock.epochMs(now) - partOn(check, decision).timestampMs) * 1000;
  return agoMicros < -WALL_CLOCK_MICROS
    ? undefined
    : now - Math.max(0, agoMicros) - WALL_CLOCK_MICROS;
}
