import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import { type BucketTable } from '../stores/memory/bucket-table.js';
import {
  CallKind,
  Debt,
  GiveBack,
  GiveBackLate,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
  type RemoteStore,
} from '../stores/remote-store.js';
import { SCARCE, type BoundCheck, type BoundLimit } from './bound-limit.js';
import { decisive, type Decision } from './decision.js';
import { type Refunds } from './peek-refund.js';
import { keyOf, type PolicyRegistry, type SplitRequest } from './policy-registry.js';
import { type QuotaRegistry } from './quota-registry.js';
import { type AcquireRequest, type PolicyRequest } from './rate-limiter.js';
import {
  passIfCold,
  failByMode,
  knownDenial,
  OUTCOME,
  payOwed,
  rememberDenial,
  takeAt,
  takeOne,
  type TakeClock,
} from './take.js';

/** Longer lists are rare, and each one is compared with those before it. */
const MOST_HERE = 8;

/** The list that is being taken, so that none allocates its own: nothing awaits in between. */
const LIMITS: BoundLimit[] = [];
const KEYS: string[] = [];
const COSTS: number[] = [];
const SLOTS: number[] = [];
const PASSES: boolean[] = [];
const LEVELS = new Float64Array(MOST_HERE);

/** A clock that stands: the buckets of a list are asked, and then taken, at one instant. */
class Instant implements TakeClock {
  private micros = 0;
  private wallMs = 0;

  read(clock: TakeClock): void {
    this.micros = clock.now();
    this.wallMs = clock.epochMs(this.micros);
  }

  now(): number {
    return this.micros;
  }

  epochMs(): number {
    return this.wallMs;
  }
}

const INSTANT = new Instant();

/** Takes lists of requests, in any mixture of policies and quotas: all or none of them. */
export class TakeAll {
  constructor(
    /** Called each time: it throws where there is no quota, or none any more. */
    private readonly quotas: () => QuotaRegistry,
    private readonly remote: RemoteStore | undefined,
    private readonly refunds: Refunds,
    private readonly clock: Clock,
  ) {}

  /** Quotas first: they are nearly always decided here, and their tokens can be put back. */
  take(request: SplitRequest): Decision | Promise<Decision> {
    const { checks, quotas } = request;
    if (quotas.length === 0) return this.takeChecks(checks);
    const made: Decision[] = [];
    const next = (): Decision | Promise<Decision> => {
      const quota = quotas[made.length];
      if (quota === undefined) return this.afterQuotas(request, made);
      const decision = this.quotas().decide(quota);
      const go = (one: Decision): Decision | Promise<Decision> => {
        if (!one.allowed) {
          this.refunds.refundQuotas(quotas.slice(0, made.length), made);
          return decisive([one]);
        }
        made.push(one);
        return next();
      };
      return decision instanceof Promise ? decision.then(go) : go(decision);
    };
    return next();
  }

  private afterQuotas(
    { checks, quotas }: SplitRequest,
    made: readonly Decision[],
  ): Decision | Promise<Decision> {
    if (checks.length === 0) return decisive(made);
    const join = (decision: Decision): Decision => {
      if (!decision.allowed) this.refunds.refundQuotas(quotas, made);
      const parts = decision.decisions ?? [decision];
      return decisive(decision.allowed ? [...made, ...parts] : parts);
    };
    const decision = this.takeChecks(checks);
    return decision instanceof Promise ? decision.then(join) : join(decision);
  }

  /** A policy that only watches has no part in whether the others are taken. */
  private takeChecks(checks: readonly BoundCheck[]): Decision | Promise<Decision> {
    const isList = checks.length > 1;
    const enforced = checks.filter((check) => !check.limit.shadow);
    if (enforced.length === checks.length || !isList) return this.begin(checks, isList);
    if (enforced.length === 0) return this.watch(checks);
    const decision = this.begin(enforced, isList);
    const watched = checks.filter((check) => check.limit.shadow);
    if (decision instanceof Promise) {
      return decision.then((made) => this.watchIfAllowed(made, watched));
    }
    return this.watchIfAllowed(decision, watched);
  }

  private watchIfAllowed(decision: Decision, watched: readonly BoundCheck[]): Decision {
    if (!decision.allowed) return decision;
    const note = (one: Decision): void => this.refunds.watched(decision, one);
    for (const check of watched) {
      const one = this.begin([check], false);
      if (one instanceof Promise) void one.then(note);
      else note(one);
    }
    return decision;
  }

  private watch(checks: readonly BoundCheck[]): Decision | Promise<Decision> {
    const decisions = checks.map((check) => this.begin([check], false));
    return decisions.some((decision) => decision instanceof Promise)
      ? Promise.all(decisions.map((one) => Promise.resolve(one))).then(decisive)
      : decisive(decisions as Decision[]);
  }

  private begin(checks: readonly BoundCheck[], isList: boolean): Decision | Promise<Decision> {
    const [first] = checks;
    const { remote, clock } = this;
    if (!isList && first!.limit.plainTable === undefined) return takeOne(first!, remote, clock);
    return new MultiTake(checks, isList, remote, clock).begin();
  }
}

/**
 * The decision on a list whose buckets all live in this process, each in a table of its own, which needs none of
 * the objects of a take that may have to wait; undefined if the list is another one. A key without a bucket makes
 * it one: room for it may be that of another key of the list.
 */
export function takeListHere(
  requests: readonly AcquireRequest[],
  policies: PolicyRegistry,
  clock: Clock,
): Decision | undefined {
  const { length } = requests;
  if (length < 2 || length > MOST_HERE) return undefined;
  let areTokens = true;
  for (let index = 0; index < length; index++) {
    const request = requests[index];
    if (request?.app !== undefined || request?.limit !== undefined) return undefined;
    const limit = policies.limitFor(request as PolicyRequest);
    const { plainTable } = limit;
    // A policy that only watches has no part in the others' fate.
    if (plainTable === undefined || limit.shadow) return undefined;
    for (let other = 0; other < index; other++) if (LIMITS[other] === limit) return undefined;
    const key = keyOf(request as PolicyRequest);
    const slot = plainTable.slotOf(key);
    if (slot === undefined) return undefined;
    if (limit.tokenTable === undefined) areTokens = false;
    LIMITS[index] = limit;
    KEYS[index] = key;
    COSTS[index] = limit.costOf(request?.cost);
    SLOTS[index] = slot;
  }
  return (areTokens ? takeTokensOfList(length, clock) : undefined) ?? takeList(length, clock);
}

/**
 * The most frequent list, whole, for the same cause as `takeTokens`: buckets of tokens only. Undefined, and nothing is
 * taken, if the clock stands still or has stepped back.
 */
function takeTokensOfList(length: number, clock: Clock): Decision | undefined {
  const now = clock.now();
  const timestampMs = clock.epochMs(now);
  let allowed = true;
  for (let index = 0; index < length; index++) {
    const { figures, tokenTable } = LIMITS[index]!;
    const slot = SLOTS[index]!;
    const page = tokenTable!.pageOf(slot);
    const at = tokenTable!.offsetOf(slot);
    const elapsed = now - page[at + 1]!;
    if (!(elapsed > 0)) return undefined;
    let level = page[at]! + elapsed * figures.perMicro;
    if (level > figures.full) level = figures.full;
    LEVELS[index] = level;
    if (!(level - COSTS[index]! * figures.perToken >= 0)) allowed = false;
  }
  const decisions: Decision[] = [];
  for (let index = 0; index < length; index++) {
    const limit = LIMITS[index]!;
    const { figures, counters } = limit;
    const { full, perToken, capacity } = figures;
    let level = LEVELS[index]!;
    const left = level - COSTS[index]! * perToken;
    let waitMs = 0;
    if (allowed) {
      const slot = SLOTS[index]!;
      const page = limit.tokenTable!.pageOf(slot);
      const at = limit.tokenTable!.offsetOf(slot);
      level = left;
      page[at] = left;
      page[at + 1] = now;
      counters.allowedLocal++;
    } else {
      // A check that would have passed is no reason for the denial.
      if (left >= 0) continue;
      if (level < 0) level = 0;
      waitMs = Math.ceil(Math.ceil(-left / figures.perMicro) / 1000);
      counters.deniedLocal++;
      if (--limit.deniedKeys.untilNextNote <= 0) limit.deniedKeys.note(limit.policy, KEYS[index]!);
    }
    const remaining = level < perToken ? 0 : Math.floor(level / perToken);
    if (allowed && remaining < capacity * SCARCE) counters.scarce++;
    const resetMs = Math.ceil((full - level) / figures.perMs);
    decisions.push({
      allowed,
      remaining,
      limit: capacity,
      delayMs: 0,
      retryAfterMs: waitMs,
      resetMs: waitMs > resetMs ? waitMs : resetMs,
      timestampMs,
      policy: limit.policy,
      tier: 'policy',
      source: 'local',
    });
  }
  return decisive(decisions);
}

/** The same for buckets of any kind. */
function takeList(length: number, clock: Clock): Decision {
  INSTANT.read(clock);
  OUTCOME.nowMicros = INSTANT.now();
  let isAllowed = true;
  for (let index = 0; index < length; index++) {
    LIMITS[index]!.plainTable!.measureAt(SLOTS[index]!, COSTS[index]!, OUTCOME);
    PASSES[index] = OUTCOME.allowed;
    if (!OUTCOME.allowed) isAllowed = false;
  }
  const decisions: Decision[] = [];
  for (let index = 0; index < length; index++) {
    // A check that would have passed is no reason for the denial.
    if (PASSES[index] !== isAllowed) continue;
    const limit = LIMITS[index]!;
    decisions.push(takeAt(limit, SLOTS[index]!, KEYS[index]!, COSTS[index]!, INSTANT));
  }
  return decisive(decisions);
}

/**
 * A take of one or more checks, all or nothing, with as little as possible taken and given back:
 * first every denial that is known here, then the buckets of this process, then the tokens that it
 * holds on lease, and last, with all the rest in one call, the store.
 */
class MultiTake implements RemoteCall {
  readonly kind = CallKind.Take;
  checks: BoundCheck[] = [];
  private decision: Decision | undefined;
  private readonly here: BoundCheck[] = [];
  private takenHereAt = 0;
  /** Checks of the store for which this process held tokens. */
  private readonly leased: BoundCheck[] = [];
  /** Checks of the store that passed by the share of this process instead. */
  private readonly byShare: RemoteCheck[] = [];
  private byShareAtMicros = 0;
  private readonly decisions: Decision[] = [];
  private readonly deciders: BoundCheck[] = [];
  private readonly passed: boolean[] = [];
  private readonly generations: number[] = [];
  /** Checks that pass uncounted if the others pass, and the estimates of their values. */
  private readonly cold: { readonly check: BoundCheck; readonly estimate: number }[] = [];
  private resolve: ((decision: Decision) => void) | undefined;

  constructor(
    all: readonly BoundCheck[],
    private readonly isList: boolean,
    private readonly store: RemoteStore | undefined,
    private readonly clock: Clock,
  ) {
    for (const check of all) {
      const { limit } = check;
      const estimate = limit.hot === undefined ? undefined : passIfCold(check, store, clock);
      if (estimate !== undefined) this.cold.push({ check, estimate });
      else if (limit.table === undefined) this.checks.push(check);
      // The charge is fixed here: if another policy denies, as much is given back, whatever the load is by then.
      else this.here.push(limit.isAdaptive ? { ...check, cost: limit.charge(check.cost) } : check);
    }
  }

  /** The decision, at once if this process can make it. */
  begin(): Decision | Promise<Decision> {
    if (this.deniedFromMemory() || !this.takeHere()) this.finish();
    else this.takeLeasedOrAsk();
    return this.decision ?? new Promise((resolve) => (this.resolve = resolve));
  }

  settled(answers: readonly RemoteAnswer[]): void {
    const allowed = answers.every((answer) => answer.allowed);
    for (const check of this.checks) payOwed(check, this.store!, this.clock);
    if (!allowed) {
      this.giveBackHere();
      this.giveBackLeased((check) => this.store?.submit(new GiveBack([check])));
    }
    answers.forEach((answer, index) => {
      // A check that would have passed is no reason for the denial.
      if (answer.allowed && !allowed) return;
      const check = this.checks[index]!;
      const { limit } = check;
      if (!answer.allowed) rememberDenial(check, this.generations[index]!, answer, this.clock);
      this.note(check, limit.describe(limit.figures, answer, EPOCH_CLOCK, 'store'), answer.allowed);
    });
    this.finish();
  }

  /** The failure modes of the policies decide. */
  failed(): void {
    this.fallBack();
    this.finish();
  }

  /**
   * The store may have decided otherwise. Tokens that it took for a check which was denied meanwhile go
   * back; a check that passed by share and was denied by the store is a debt. A check that passed
   * because its policy lets everything pass (`open`) was never counted, and is none.
   */
  settledLate(answers: readonly RemoteAnswer[], checks: readonly RemoteCheck[]): void {
    if (answers.every((answer) => answer.allowed)) {
      const unused = checks.filter((check) => !this.hasPassed(check as BoundCheck));
      if (unused.length > 0) this.store?.submit(new GiveBackLate(unused, answers[0]!.nowMicros));
    } else {
      const usedAtMicros = this.byShareAtMicros;
      const owed = checks.filter((check) => this.byShare.includes(check));
      const debts = owed.map((check) => ({ ...check, usedAtMicros }));
      if (debts.length > 0) this.store?.submit(new Debt(debts));
    }
  }

  /** Checks that passed by share are reported when the store answers again. */
  unanswered(checks: readonly RemoteCheck[]): void {
    for (const check of checks as readonly BoundCheck[]) {
      if (!this.byShare.includes(check)) continue;
      check.limit.latest().owe(check.key, check.cost, this.byShareAtMicros);
    }
  }

  private hasPassed(check: BoundCheck): boolean {
    const isOpen = check.limit.failureMode === 'open' && this.decision?.allowed === true;
    return isOpen || this.byShare.includes(check);
  }

  private note(check: BoundCheck, decision: Decision, passed: boolean): void {
    this.decisions.push(decision);
    this.deciders.push(check);
    this.passed.push(passed);
  }

  private forgetNotes(from: number): void {
    this.decisions.length = from;
    this.deciders.length = from;
    this.passed.length = from;
  }

  private finish(): Decision {
    if (this.cold.length > 0) this.passCold();
    this.decision = this.isList ? decisive(this.decisions) : this.decisions[0]!;
    for (const [index, { limit, key }] of this.deciders.entries()) {
      const { source, remaining, limit: capacity } = this.decisions[index]!;
      const passed = this.passed[index]!;
      limit.count(key, passed, source);
      if (passed && remaining < capacity * SCARCE) limit.counters.scarce++;
    }
    for (const { limit } of this.leased) limit.leases!.decided++;
    this.resolve?.(this.decision);
    return this.decision;
  }

  /** A check that would have passed is no reason for a denial. */
  private passCold(): void {
    if (this.decisions.some(({ allowed }) => !allowed)) return;
    OUTCOME.nowMicros = this.clock.now();
    for (const { check, estimate } of this.cold) {
      const { limit } = check;
      limit.counters.cold++;
      this.note(check, limit.describeCold(estimate, OUTCOME, this.clock), true);
    }
  }

  private deniedFromMemory(): boolean {
    const now = this.clock.now();
    for (const check of this.checks) {
      const { limit, key, cost } = check;
      if (limit.leases !== undefined && limit.leases.tokensOf(key, now) >= cost) continue;
      const denied = knownDenial(check, this.clock);
      if (denied !== undefined) this.note(check, denied, false);
    }
    return this.decisions.length > 0;
  }

  private takeLeasedOrAsk(): void {
    const asked = this.checks;
    this.checks = [];
    OUTCOME.nowMicros = this.clock.now();
    for (const check of asked) {
      const { limit, key, cost } = check;
      if (limit.leases?.take(key, cost, OUTCOME) === true) {
        this.leased.push(check);
        this.note(check, limit.describe(limit.figures, OUTCOME, this.clock, 'local'), true);
      } else {
        this.checks.push(check);
        this.generations.push(limit.denials.generationOf(key));
      }
    }
    if (this.checks.length === 0 || this.store === undefined) return void this.finish();
    const missed = this.checks;
    this.store.submit(this);
    for (const { limit, key, cost } of missed) limit.leases?.missed(key, cost, this.clock.now());
  }

  private takeHere(): boolean {
    this.takenHereAt = this.clock.now();
    return this.takeFrom(this.here, (check) => check.limit.table!, 'local');
  }

  /** Tokens of this process, taken before another check was denied. */
  private giveBackHere(): void {
    const now = this.clock.now();
    this.forgetNotes(0);
    for (const { limit, key, cost } of this.here) {
      limit.table!.refund(key, cost, now, this.takenHereAt);
    }
  }

  /** The same for tokens on lease; `used` gets the checks whose tokens were reported as used. */
  private giveBackLeased(used: (check: BoundCheck) => void): void {
    const now = this.clock.now();
    for (const check of this.leased.splice(0)) {
      const { limit, key, cost } = check;
      if (!limit.leases!.putBack(key, cost, now)) used(check);
    }
  }

  /** Each check by the failure mode of its policy; those by local share all or nothing again. */
  private fallBack(): void {
    const taken = this.decisions.length;
    const closed = this.checks.filter(({ limit }) => limit.failureMode === 'closed');
    const open = this.checks.filter(({ limit }) => limit.failureMode === 'open');
    const byShare = this.checks.filter(({ limit }) => limit.failureMode === 'local');
    this.byShareAtMicros = OUTCOME.nowMicros = this.clock.now();
    for (const check of closed) this.noteFallback(check, 'closed');
    const nodes = this.store?.nodes ?? 1;
    const isDenied = this.decisions.slice(taken).some((decision) => !decision.allowed);
    if (
      isDenied ||
      !this.takeFrom(byShare, (check) => check.limit.fallbackTable(nodes), 'fallback')
    ) {
      const denials = this.decisions.slice(taken);
      const deciders = this.deciders.slice(taken);
      this.giveBackHere();
      // The bucket may have refilled since they were reported as used; so they are lost.
      this.giveBackLeased(() => {});
      denials.forEach((denial, index) => this.note(deciders[index]!, denial, denial.allowed));
      return;
    }
    for (const check of open) this.noteFallback(check, 'open');
  }

  private noteFallback(check: BoundCheck, mode: 'open' | 'closed'): void {
    const { limit } = check;
    failByMode(mode, limit);
    const decision = limit.describe(limit.figures, OUTCOME, this.clock, 'fallback');
    this.note(check, decision, OUTCOME.allowed);
  }

  /** Takes all checks from tables of this process, or none. */
  private takeFrom(
    checks: readonly BoundCheck[],
    tableOf: (check: BoundCheck) => BucketTable,
    source: 'local' | 'fallback',
  ): boolean {
    OUTCOME.nowMicros = this.clock.now();
    const known = this.decisions.length;
    const note = (check: BoundCheck, table: BucketTable): void => {
      const decision = check.limit.describe(table.limit, OUTCOME, this.clock, source);
      this.note(check, decision, OUTCOME.allowed);
    };
    for (const check of checks) {
      const table = tableOf(check);
      table.peek(check.key, check.cost, OUTCOME);
      if (!OUTCOME.allowed && !check.limit.shadow) note(check, table);
    }
    if (this.decisions.length > known) return false;
    for (const [index, check] of checks.entries()) {
      const table = tableOf(check);
      table.take(check.key, check.cost, OUTCOME);
      if (OUTCOME.allowed || check.limit.shadow) {
        if (OUTCOME.allowed && source === 'fallback') this.byShare.push(check);
        note(check, table);
        continue;
      }
      // Two of the keys share an overflow bucket, which had enough for either but not for both.
      this.forgetNotes(known);
      note(check, table);
      this.byShare.length = 0;
      for (const taken of checks.slice(0, index)) {
        tableOf(taken).refund(taken.key, taken.cost, OUTCOME.nowMicros, OUTCOME.nowMicros);
      }
      return false;
    }
    return true;
  }
}
