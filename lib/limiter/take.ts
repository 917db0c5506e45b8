import { Outcome } from '../algorithms/algorithm.js';
import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import {
  CallKind,
  Debt,
  GiveBackLate,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteStore,
} from '../stores/remote-store.js';
import { PAGE_BITS, PAGE_KEYS, type BucketTable } from '../stores/memory/bucket-table.js';
import { SCARCE, type BoundCheck, type BoundLimit } from './bound-limit.js';
import { type Decision } from './decision.js';
import { keyOf } from './policy-registry.js';
import { type PolicyRequest } from './rate-limiter.js';

/**
 * The outcome of all takes, so that none allocates one. It is read before the next take: nothing awaits
 * in between.
 */
export const OUTCOME = new Outcome();

/** The part of a clock that a take of a bucket in this process reads. */
export type TakeClock = Pick<Clock, 'now' | 'epochMs'>;

/** The wait of callers that are denied because the store is away: about as long as until its next probe. */
const CLOSED_RETRY_MICROS = 1_000_000;

/**
 * Another process may reset or refund the key, or the store may lose it, without notice here. So a denial
 * is remembered for a second at most, which makes a flood of any size one call per second.
 */
const LONGEST_MEMORY_MICROS = 1_000_000;

/** Takes one bucket: in this process where it lives here, else with leased tokens, else in the store. */
export function take(
  limit: BoundLimit,
  request: PolicyRequest,
  remote: RemoteStore | undefined,
  clock: Clock,
): Decision | Promise<Decision> {
  const { tokenTable } = limit;
  if (tokenTable === undefined) return takeOtherBucket(limit, request, remote, clock);
  const key = keyOf(request);
  const cost = limit.costOf(request.cost);
  const decision = takeTokens(limit, tokenTable, undefined, key, cost, clock);
  return decision ?? takeFromTable(limit, tokenTable, key, cost, clock);
}

/** Takes a bucket of this process whose slot is known. */
export function takeAt(
  limit: BoundLimit,
  slot: number,
  key: string,
  cost: number,
  clock: TakeClock,
): Decision {
  const { tokenTable } = limit;
  const decision = tokenTable && takeTokens(limit, tokenTable, slot, key, cost, clock);
  return decision ?? takeFromTable(limit, limit.plainTable!, key, cost, clock);
}

/**
 * The most frequent decision, whole: the bucket of tokens, the counts and what is told of them, as their own
 * functions have it. V8 inlines no more than 920 bytes of bytecode into one function, and of small parts this
 * decision has 1,700; so it would be made of calls that pass numbers through the heap, a third slower, measured.
 * Nor does it inline what it has rarely seen called, and to begin with most keys are new; so calls stand before the
 * look-up, and what comes after it has none.
 *
 * Undefined for what is rare, a first take of a key and a clock that stands still: that is not to be inlined here.
 */
function takeTokens(
  limit: BoundLimit,
  table: BucketTable,
  knownSlot: number | undefined,
  key: string,
  cost: number,
  clock: TakeClock,
): Decision | undefined {
  // First of all: the processor ends all that was begun before it reads its clock, and so would wait for the look-up,
  // 5 ns, measured.
  const now = clock.now();
  const timestampMs = clock.epochMs(now);
  const slot = knownSlot ?? table.slotOf(key);
  if (slot === undefined) return undefined;
  const page = table.pages[slot >>> PAGE_BITS]!;
  const at = (slot & (PAGE_KEYS - 1)) * table.width;
  const elapsed = now - page[at + 1]!;
  // A clock that stands still or steps back is rare, and has rules of its own.
  if (!(elapsed > 0)) return undefined;
  const { figures, counters } = limit;
  const { full, perToken, perMicro, capacity } = figures;
  let level = page[at]! + elapsed * perMicro;
  if (level > full) level = full;
  const left = level - cost * perToken;
  const allowed = left >= 0;
  let waitMs = 0;
  if (allowed) {
    level = left;
    page[at] = left;
    page[at + 1] = now;
    counters.allowedLocal++;
  } else {
    if (level < 0) level = 0;
    waitMs = Math.ceil(Math.ceil(-left / perMicro) / 1000);
    counters.deniedLocal++;
    if (--limit.deniedKeys.untilNextNote <= 0) limit.deniedKeys.note(limit.policy, key);
  }
  const remaining = level < perToken ? 0 : Math.floor(level / perToken);
  if (allowed && remaining < capacity * SCARCE) counters.scarce++;
  const resetMs = Math.ceil((full - level) / figures.perMs);
  return {
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
  };
}

function takeFromTable(
  limit: BoundLimit,
  table: BucketTable,
  key: string,
  cost: number,
  clock: TakeClock,
): Decision {
  OUTCOME.nowMicros = clock.now();
  table.take(key, cost, OUTCOME);
  return limit.decide(key, limit.figures, OUTCOME, clock, 'local');
}

/** A bucket of another algorithm, of the store, or of a limit of which some values have another or pass uncounted. */
function takeOtherBucket(
  base: BoundLimit,
  request: PolicyRequest,
  remote: RemoteStore | undefined,
  clock: Clock,
): Decision | Promise<Decision> {
  const key = keyOf(request);
  const { plainTable } = base;
  if (plainTable !== undefined) {
    return takeFromTable(base, plainTable, key, base.costOf(request.cost), clock);
  }
  if (!base.isSpecial) return takeShared(base, key, base.costOf(request.cost), remote!, clock);
  const limit = request.tier === undefined ? base.ofValue(key) : base;
  return takeOne({ limit, key, cost: limit.costOf(request.cost) }, remote, clock);
}

/** Takes one bucket of any limit. */
export function takeOne(
  check: BoundCheck,
  remote: RemoteStore | undefined,
  clock: Clock,
): Decision | Promise<Decision> {
  const { limit, key, cost } = check;
  const { table } = limit;
  const estimate = passIfCold(check, remote, clock);
  if (estimate !== undefined) return limit.passCold(estimate, OUTCOME, clock);
  if (table === undefined) return takeShared(limit, key, cost, remote!, clock);
  return takeFromTable(limit, table, key, limit.charge(cost), clock);
}

/** Counts a request of a policy with `hot`. The estimate of its value if it may pass, else undefined. */
export function passIfCold(
  { limit, key, cost }: BoundCheck,
  remote: RemoteStore | undefined,
  clock: Clock,
): number | undefined {
  const { hot, table } = limit;
  if (hot === undefined) return undefined;
  OUTCOME.nowMicros = clock.now();
  const nodes = table === undefined ? remote!.countedNodes() : 1;
  return hot.pass(key, limit.charge(cost), nodes, OUTCOME.nowMicros);
}

function takeShared(
  limit: BoundLimit,
  key: string,
  cost: number,
  store: RemoteStore,
  clock: Clock,
): Decision | Promise<Decision> {
  const leased = takeLeased(limit, key, cost, clock);
  return leased ?? new SingleTake({ limit, key, cost }, store, clock).begin();
}

/** The decision, if this process holds enough tokens of the key to make it. */
function takeLeased(
  limit: BoundLimit,
  key: string,
  cost: number,
  clock: Clock,
): Decision | undefined {
  const { leases } = limit;
  if (leases === undefined || leases.size === 0) return undefined;
  OUTCOME.nowMicros = clock.now();
  if (!leases.take(key, cost, OUTCOME)) return undefined;
  leases.decided++;
  return limit.decide(key, limit.figures, OUTCOME, clock, 'local');
}

/** Tokens that the store no longer has may be here, leased by this process just before. */
function takeLeasedAfterAll(check: BoundCheck, clock: Clock): Decision | undefined {
  const { limit, key, cost } = check;
  const { leases } = limit;
  if (leases === undefined || leases.size === 0) return undefined;
  OUTCOME.nowMicros = clock.now();
  if (!leases.takeAfterAll(key, cost, OUTCOME)) return undefined;
  leases.decided++;
  return limit.decide(key, limit.figures, OUTCOME, clock, 'local');
}

/** A take of one bucket of the store: most requests are that, and need none of the lists of several. */
class SingleTake implements RemoteCall {
  readonly kind = CallKind.Take;
  readonly checks: readonly [BoundCheck];
  private decision: Decision | undefined;
  private resolve: ((decision: Decision) => void) | undefined;
  private generation = 0;
  /** The request passed while the store could not answer; if by share, the share was charged at that instant. */
  private hasPassed = false;
  private byShareAtMicros: number | undefined;

  constructor(
    check: BoundCheck,
    private readonly store: RemoteStore,
    private readonly clock: Clock,
  ) {
    this.checks = [check];
  }

  /** The decision, at once if it is known here. */
  begin(): Decision | Promise<Decision> {
    const { limit, key, cost } = this.checks[0];
    const denied = knownDenial(this.checks[0], this.clock);
    if (denied !== undefined) {
      limit.count(key, false, 'local');
      return denied;
    }
    this.generation = limit.denials.generationOf(key);
    this.store.submit(this);
    limit.leases?.missed(key, cost, this.clock.now());
    return this.decision ?? new Promise((resolve) => (this.resolve = resolve));
  }

  settled(answers: readonly RemoteAnswer[]): void {
    const [check] = this.checks;
    const answer = answers[0]!;
    payOwed(check, this.store, this.clock);
    if (!answer.allowed) {
      rememberDenial(check, this.generation, answer, this.clock);
      const taken = takeLeasedAfterAll(check, this.clock);
      if (taken !== undefined) return this.finish(taken);
    }
    this.finish(check.limit.decide(check.key, check.limit.figures, answer, EPOCH_CLOCK, 'store'));
  }

  /** The failure mode of the policy decides. */
  failed(): void {
    const { clock, store } = this;
    const [{ limit, key, cost }] = this.checks;
    const { failureMode } = limit;
    OUTCOME.nowMicros = clock.now();
    if (failureMode !== 'local') {
      failByMode(failureMode, limit);
      this.hasPassed = OUTCOME.allowed;
      return this.finish(limit.decide(key, limit.figures, OUTCOME, clock, 'fallback'));
    }
    const table = limit.fallbackTable(store.nodes);
    // A bucket is made for a key only when a request passes.
    table.peek(key, cost, OUTCOME);
    if (OUTCOME.allowed || limit.shadow) table.take(key, cost, OUTCOME);
    if (OUTCOME.allowed) this.byShareAtMicros = OUTCOME.nowMicros;
    this.hasPassed = OUTCOME.allowed;
    this.finish(limit.decide(key, table.limit, OUTCOME, clock, 'fallback'));
  }

  /** As for several checks (take-all). */
  settledLate([answer]: readonly RemoteAnswer[]): void {
    const { checks, store, byShareAtMicros: usedAtMicros } = this;
    if (answer!.allowed) {
      if (!this.hasPassed) store.submit(new GiveBackLate(checks, answer!.nowMicros));
    } else if (usedAtMicros !== undefined) {
      store.submit(new Debt([{ ...checks[0], usedAtMicros }]));
    }
  }

  unanswered(): void {
    const [{ limit, key, cost }] = this.checks;
    const { byShareAtMicros } = this;
    if (byShareAtMicros !== undefined) limit.latest().owe(key, cost, byShareAtMicros);
  }

  private finish(decision: Decision): void {
    this.decision = decision;
    this.resolve?.(decision);
  }
}

/** The outcome of a check whose policy does not go by a share while the store cannot answer. */
export function failByMode(mode: 'open' | 'closed', { figures }: BoundLimit): void {
  const isOpen = mode === 'open';
  OUTCOME.allowed = isOpen;
  OUTCOME.level = isOpen ? figures.full : 0;
  OUTCOME.waitMicros = isOpen ? 0 : CLOSED_RETRY_MICROS;
}

/** The denial that a check runs into again, if that is known here. */
export function knownDenial(check: BoundCheck, clock: Clock): Decision | undefined {
  const { limit, key, cost } = check;
  const now = clock.now();
  const denial = limit.denials.find(key, cost, now);
  if (denial === undefined) return undefined;
  const waitMicros = limit.waitAfter(denial, cost, now);
  if (waitMicros === undefined) return undefined;
  OUTCOME.nowMicros = now;
  OUTCOME.allowed = false;
  OUTCOME.level = denial.level;
  OUTCOME.waitMicros = waitMicros;
  return limit.describe(limit.figures, OUTCOME, clock, 'local');
}

/**
 * Remembers a denial of the store, unless tokens came back since the call was made. Its time counts
 * from the arrival of the answer, which is later than the store's decision: never too early.
 */
export function rememberDenial(
  check: BoundCheck,
  generation: number,
  answer: RemoteAnswer,
  clock: Clock,
): void {
  const { limit, key, cost } = check;
  if (limit.denials.generationOf(key) !== generation) return;
  const now = clock.now();
  const untilMicros = now + Math.min(answer.waitMicros, LONGEST_MEMORY_MICROS);
  const dueMicros = now + answer.waitMicros;
  limit.denials.remember(key, { untilMicros, dueMicros, cost, level: answer.level });
}

/** The store answers for a key: tokens that passed without it are reported as a debt. */
export function payOwed({ limit, key }: BoundCheck, store: RemoteStore, clock: Clock): void {
  const debt = limit.takeDebt(key, clock);
  if (debt !== undefined) store.submit(debt);
}
