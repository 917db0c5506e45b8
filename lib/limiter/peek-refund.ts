import { AlgorithmCode } from '../algorithms/limit.js';
import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import { type BucketTable } from '../stores/memory/bucket-table.js';
import {
  CallKind,
  GiveBackLate,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteStore,
} from '../stores/remote-store.js';
import { type BoundCheck } from './bound-limit.js';
import { type Decision, type DecisionSource } from './decision.js';
import { type SplitRequest } from './policy-registry.js';
import { type QuotaRegistry } from './quota-registry.js';
import { type QuotaRequest } from './rate-limiter.js';
import { failByMode, OUTCOME } from './take.js';
import { type WaitingLines } from './waiting-lines.js';

/** By so much the wall clock and the monotonic one differ from one look to the next. */
const WALL_CLOCK_MICROS = 2000;

/** The decision that a take would get, with the tokens that it would take still there. While the store is away, so by failure mode. */
export function peekAt(
  check: BoundCheck,
  remote: RemoteStore | undefined,
  clock: Clock,
): Decision | Promise<Decision> {
  const { limit, key, cost } = check;
  const now = clock.now();
  const estimate = limit.hot?.estimateIfCold(key, cost, now);
  if (estimate !== undefined) {
    OUTCOME.nowMicros = now;
    return limit.describeCold(estimate, OUTCOME, clock);
  }
  if (limit.table !== undefined || remote === undefined) {
    return peekHere(check, limit.table!, clock, 'local');
  }
  return callStore(remote, CallKind.Peek, [check]).then((answers) => {
    const inHand = limit.leases?.tokensOf(key, clock.now()) ?? 0;
    if (answers === undefined) {
      if (inHand >= cost) return peekInHand(check, inHand, clock);
      return peekWithoutStore(check, remote, clock);
    }
    const outcome = { ...answers[0]! };
    if (outcome.allowed) outcome.level += cost * limit.figures.perToken;
    outcome.level = Math.min(limit.figures.full, outcome.level + inHand * limit.figures.perToken);
    if (inHand >= cost) Object.assign(outcome, { allowed: true, waitMicros: 0 });
    return limit.describe(limit.figures, outcome, EPOCH_CLOCK, 'store');
  });
}

function peekHere(
  { limit, key, cost }: BoundCheck,
  table: BucketTable,
  clock: Clock,
  source: DecisionSource,
): Decision {
  OUTCOME.nowMicros = clock.now();
  const charge = limit.charge(cost);
  table.peek(key, charge, OUTCOME);
  if (OUTCOME.allowed) OUTCOME.level += charge * table.limit.perToken;
  return limit.describe(table.limit, OUTCOME, clock, source);
}

/** While the store is away: tokens held here are certain, and the rest unknown. */
function peekInHand({ limit }: BoundCheck, tokens: number, clock: Clock): Decision {
  OUTCOME.nowMicros = clock.now();
  OUTCOME.allowed = true;
  OUTCOME.level = tokens * limit.figures.perToken;
  OUTCOME.waitMicros = 0;
  return limit.describe(limit.figures, OUTCOME, clock, 'local');
}

function peekWithoutStore(check: BoundCheck, { nodes }: RemoteStore, clock: Clock): Decision {
  const { limit } = check;
  const { failureMode } = limit;
  if (failureMode === 'local') {
    return peekHere(check, limit.fallbackTable(nodes), clock, 'fallback');
  }
  OUTCOME.nowMicros = clock.now();
  failByMode(failureMode, limit);
  return limit.describe(limit.figures, OUTCOME, clock, 'fallback');
}

/** Puts tokens back where they were taken from, and wakes the callers that wait for them. */
export class Refunds {
  /** Policies in shadow that had no token for a request, by a part of the decision on it. */
  private readonly ungiven = new WeakMap<Decision, readonly string[]>();

  constructor(
    private readonly registry: QuotaRegistry | undefined,
    private readonly remote: RemoteStore | undefined,
    private readonly lines: WaitingLines,
    private readonly clock: Clock,
  ) {}

  refund({ checks, quotas }: SplitRequest, decision?: Decision): void | Promise<void> {
    if (decision === undefined) {
      this.refundQuotas(quotas, []);
      return this.refundChecks(this.counted(checks));
    }
    this.refundQuotas(quotas, decision.decisions ?? [decision]);
    return this.refundChecks(this.refundShares(this.counted(checks, decision), decision), decision);
  }

  /** Tokens that `acquire` took for a caller that is gone. Where a policy in shadow has taken them, nobody knows. */
  giveBack({ checks, quotas }: SplitRequest, decision: Decision): void {
    const taken = this.counted(checks, decision).filter(({ limit }) => !limit.shadow);
    // Quotas are taken first, so their decisions are the first.
    this.refundQuotas(quotas, decision.decisions ?? [decision]);
    const others = this.refundLate(this.refundShares(taken, decision), decision);
    if (others.length > 0) void this.refundChecks(others, decision);
  }

  /** A policy in shadow has no part in the decision on a request beside others. */
  watched(decision: Decision, { isPassedOver, cold, policy }: Decision): void {
    if (!isPassedOver && !cold) return;
    const [part = decision] = decision.decisions ?? [];
    this.ungiven.set(part, [...(this.ungiven.get(part) ?? []), policy]);
  }

  /** A request that passed uncounted took nothing, so that nothing can go back. */
  private counted(checks: readonly BoundCheck[], decision?: Decision): readonly BoundCheck[] {
    return checks.filter((check) => {
      const { hot, shadow, policy } = check.limit;
      if (decision === undefined) return hot?.isCold(check.key, this.clock.now()) !== true;
      const part = partOn(check, decision);
      if (hot !== undefined && part.cold) return false;
      if (!shadow) return true;
      const parts = decision.decisions ?? [decision];
      return !part.isPassedOver && !parts.some((one) => this.ungiven.get(one)?.includes(policy));
    });
  }

  /**
   * The answer of the store may have come a while after the take. Tokens that flowed in since have made
   * good for a part already, so only the rest goes back. Returns the checks that the store did not decide.
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
   * Tokens that the store never gave must not go there, but back to the share that gave them. Checks
   * that passed by another failure mode took none. Returns the rest.
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
      this.registry?.giveBack(quota, decisions[i]?.source);
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

/** The decision on one of the checks. */
function partOn({ limit }: BoundCheck, decision: Decision): Decision {
  return decision.decisions?.find(({ policy }) => policy === limit.policy) ?? decision;
}

/** The instant of the take, on the store's clock. */
function takenInStoreAt(check: BoundCheck, decision: Decision): number {
  return Math.round(partOn(check, decision).timestampMs * 1000);
}

/**
 * The instant of the take on the clock of this process; a little before, because the instant of a
 * decision is of the wall clock, which drifts against it. Undefined if the wall clock has stepped back.
 */
function takenHereAt(check: BoundCheck, decision: Decision, clock: Clock): number | undefined {
  const now = clock.now();
  const agoMicros = (clock.epochMs(now) - partOn(check, decision).timestampMs) * 1000;
  return agoMicros < -WALL_CLOCK_MICROS
    ? undefined
    : now - Math.max(0, agoMicros) - WALL_CLOCK_MICROS;
}

/** A call to the store that is no take. Resolves to undefined if the store could not answer. */
function callStore(
  store: RemoteStore,
  kind: CallKind.Peek | CallKind.Refund | CallKind.LateRefund,
  checks: readonly BoundCheck[],
  takenAtMicros?: number,
): Promise<readonly RemoteAnswer[] | undefined> {
  return new Promise((resolve) => {
    const call: RemoteCall = {
      kind,
      checks,
      ...(takenAtMicros !== undefined && { takenAtMicros }),
      settled: resolve,
      failed: () => resolve(undefined),
      settledLate: () => {},
    };
    store.submit(call);
  });
}
