import { CLOCK_STEP_MICROS, type Outcome } from './algorithm.js';
import { type Limit, type LimitChange, notRefilled } from './limit.js';

/**
 * A token bucket of which nodes take tokens ahead: what lua/buckets.lua does with a bucket that is
 * leased, as pure functions.
 *
 * Leased tokens are counted by the generation, the second of the bucket's time, in which they were
 * granted; the bucket knows no nodes. They stop counting when they were reported as used, came
 * back, or when two generations have passed. A node uses tokens for less than one lease time after
 * it sent the call that brought them, so by then nobody can use them any more.
 *
 * The bucket's time is the store's clock; but where that steps back by more than a second, the
 * bucket's time goes on from where it was, so that no generation comes twice and the nodes' reports
 * still say which tokens they mean.
 *
 * Invariant: level + outstanding ≤ full at every instant, because refill stops at full −
 * outstanding and a grant only moves tokens from one to the other. A token in a node's hand is
 * outstanding; so level and hands together never hold more than a full bucket, they gain no more
 * than the rate, and in any span Δ at most capacity + rate × Δ tokens are used: for any number of
 * nodes, crashes and lost replies.
 *
 * While a limit changes, tokens are a part of the bucket, and what is outstanding must not become a
 * smaller one: the bucket would fill up beside it, and when the limit changes back both can be used.
 * So a leased token counts for the largest part that it has been since it was leased, its weight.
 */
export interface LeasedState {
  /** Units in the bucket at `last`; below zero if it owes some. */
  readonly level: number;
  /** When it was last changed, on the store's clock. */
  readonly last: number;
  /** Tokens leased in the generation of `last`. */
  readonly current: number;
  /** Tokens leased in the generation before. */
  readonly previous: number;
  /** Units that each of the current ones counts for: more than a token only after a change. */
  readonly currentWeight: number;
  readonly previousWeight: number;
  /** How far the bucket's time is ahead of the store's clock. */
  readonly aheadMicros: number;
}

/** The tokens that a node has used or returned since its last call, by their generation. */
export interface LeaseReport {
  readonly generation: number;
  readonly used: number;
  readonly returned: number;
  /** Tokens of the generation before that one. */
  readonly olderUsed: number;
  readonly olderReturned: number;
}

export interface LeaseGrant {
  readonly granted: number;
  /** The generation that the tokens are of. */
  readonly generation: number;
  /** Units that are left. */
  readonly level: number;
}

/** How long leased tokens may be used, and how long a generation is. */
export const LEASE_TTL_MICROS = 1_000_000;

export function generationAt(micros: number): number {
  return Math.floor(micros / LEASE_TTL_MICROS);
}

export function startLeased(limit: Limit, now: number): LeasedState {
  const { full, perToken } = limit;
  return {
    level: full,
    last: now,
    current: 0,
    previous: 0,
    currentWeight: perToken,
    previousWeight: perToken,
    aheadMicros: 0,
  };
}

/**
 * The bucket as of now. Each stretch between two generations is refilled under what was outstanding
 * in it, so that it makes no difference how often one looks.
 */
export function settleLeased(limit: Limit, state: LeasedState, now: number): LeasedState {
  const based = rebaseLeased(state, now);
  if (now <= based.last) return based;
  const settled: Writable<LeasedState> = { ...based };
  const { aheadMicros } = based;
  while (now > settled.last) {
    const { level, last, current, previous } = settled;
    const end = (generationAt(last + aheadMicros) + 1) * LEASE_TTL_MICROS - aheadMicros;
    const isLent = current + previous > 0;
    const until = isLent && end < now ? end : now;
    settled.level = Math.min(roomOf(limit, settled), level + (until - last) * limit.perMicro);
    settled.last = until;
    if (isLent && until === end) turnGeneration(limit, settled);
  }
  return settled;
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] };

function turnGeneration({ perToken }: Limit, state: Writable<LeasedState>): void {
  state.previous = state.current;
  state.previousWeight = state.currentWeight;
  state.current = 0;
  state.currentWeight = perToken;
}

/**
 * The state itself, or the one with another base if the store's clock has stepped back. A bucket of
 * which nothing is on lease has no generations to go on with.
 */
export function rebaseLeased(state: LeasedState, now: number): LeasedState {
  const step = state.last - now;
  if (step <= CLOCK_STEP_MICROS) return state;
  const hasGenerations = state.current + state.previous > 0 || state.aheadMicros > 0;
  return { ...state, last: now, aheadMicros: hasGenerations ? state.aheadMicros + step : 0 };
}

/** Takes `cost` at the instant of the outcome, if it is there, and says so in the outcome. */
export function takeLeased(
  limit: Limit,
  state: LeasedState,
  cost: number,
  outcome: Outcome,
): LeasedState {
  const settled = settleLeased(limit, state, outcome.nowMicros);
  const left = settled.level - cost * limit.perToken;
  outcome.allowed = left >= 0;
  outcome.level = left >= 0 ? left : Math.max(0, settled.level);
  const behind = settled.last - outcome.nowMicros;
  outcome.waitMicros = left >= 0 ? 0 : behind + Math.ceil(-left / limit.perMicro);
  return left >= 0 ? { ...settled, level: left } : rebaseLeased(state, outcome.nowMicros);
}

/** Gives back what was taken and not used; never more than there is room for. */
export function refundLeased(
  limit: Limit,
  state: LeasedState,
  now: number,
  cost: number,
): LeasedState {
  const settled = settleLeased(limit, state, now);
  const level = Math.min(roomOf(limit, settled), settled.level + cost * limit.perToken);
  return { ...settled, level };
}

/** The same for a take that nobody knew of for a while, less what has flowed in again since. */
export function refundLeasedLate(
  limit: Limit,
  state: LeasedState,
  now: number,
  cost: number,
  takenAt: number,
): LeasedState {
  const settled = settleLeased(limit, state, now);
  const units = notRefilled(limit, cost, settled.last - takenAt);
  if (units === 0) return rebaseLeased(state, now);
  return { ...settled, level: Math.min(roomOf(limit, settled), settled.level + units) };
}

/** Books what was used without having been taken: up to one bucket below empty. */
export function oweLeased(
  limit: Limit,
  state: LeasedState,
  now: number,
  cost: number,
): LeasedState {
  const settled = settleLeased(limit, state, now);
  return { ...settled, level: Math.max(-limit.full, settled.level - cost * limit.perToken) };
}

/**
 * Books a node's report, then grants it up to `want` tokens. What a counter does not hold is neither
 * booked nor returned: nothing comes into being. A call that changes nothing leaves the state as it is.
 * `unitsOf` says what tokens that come back are worth, if that is not what they are.
 */
export function leaseTokens(
  limit: Limit,
  state: LeasedState,
  now: number,
  report: LeaseReport,
  want: number,
  unitsOf = (tokens: number): number => tokens * limit.perToken,
): { readonly state: LeasedState; readonly grant: LeaseGrant } {
  const settled = settleLeased(limit, state, now);
  const generation = generationAt(settled.last + settled.aheadMicros);
  const { current, previous } = settled;
  const behind = generation - report.generation;
  const newer = { used: report.used, returned: report.returned };
  const older = { used: report.olderUsed, returned: report.olderReturned };
  const ofCurrent = book(current, behind === 0 ? newer : behind === -1 ? older : NOTHING);
  const ofPrevious = book(previous, behind === 1 ? newer : behind === 0 ? older : NOTHING);
  const booked: LeasedState = {
    ...settled,
    current: ofCurrent.left,
    previous: ofPrevious.left,
    currentWeight: ofCurrent.left > 0 ? settled.currentWeight : limit.perToken,
    previousWeight: ofPrevious.left > 0 ? settled.previousWeight : limit.perToken,
  };
  const room = roomOf(limit, booked);
  const level = Math.min(room, settled.level + unitsOf(ofCurrent.back + ofPrevious.back));
  const granted = grantable(limit, booked.currentWeight, room, level, want);
  const left = level - granted * limit.perToken;
  const grant = { granted, generation, level: Math.max(0, left) };
  const isChanged = granted > 0 || ofCurrent.left < current || ofPrevious.left < previous;
  if (!isChanged) return { state: rebaseLeased(state, now), grant };
  return { state: { ...booked, level: left, current: ofCurrent.left + granted }, grant };
}

/** Tokens that weigh more than they take out of the bucket are leased only as far as there is room. */
function grantable(
  { perToken }: Limit,
  weight: number,
  room: number,
  level: number,
  want: number,
): number {
  const there = Math.max(0, Math.min(want, Math.floor(level / perToken)));
  if (weight <= perToken) return there;
  return Math.min(there, Math.floor((room - level) / (weight - perToken)));
}

/**
 * The bucket under another limit, as full as it was. Leased tokens stay as many: they can still be
 * used, and the room beside them is what the new limit leaves.
 */
export function changeLeased(change: LimitChange, state: LeasedState, now: number): LeasedState {
  const { from, to, units } = change;
  const settled = settleLeased(from, state, now);
  const weigh = (tokens: number, weight: number): number =>
    tokens > 0 ? Math.max(to.perToken, -units.of(-weight)) : to.perToken;
  const changed = {
    ...settled,
    currentWeight: weigh(settled.current, settled.currentWeight),
    previousWeight: weigh(settled.previous, settled.previousWeight),
  };
  return { ...changed, level: Math.min(roomOf(to, changed), change.levelOf(settled.level)) };
}

/**
 * The worth of tokens that come back from a node which still goes by `from`, and had them of that
 * limit: the same part of the bucket as it is now, but no more than they are, because the bucket may
 * have been filled up beside them.
 */
export function unitsReturned({ from, to, units }: LimitChange, tokens: number): number {
  return Math.min(tokens * to.perToken, Math.max(0, units.of(tokens * from.perToken)));
}

const NOTHING = { used: 0, returned: 0 };

function book(
  counter: number,
  { used, returned }: { used: number; returned: number },
): { left: number; back: number } {
  const afterUse = counter - Math.min(used, counter);
  const back = Math.min(returned, afterUse);
  return { left: afterUse - back, back };
}

/** Units that the bucket may hold beside its leased tokens; those of a limit that was lowered
 * meanwhile may be more than it has. */
function roomOf(
  { full }: Limit,
  { current, previous, currentWeight, previousWeight }: LeasedState,
): number {
  return Math.max(0, full - (current * currentWeight + previous * previousWeight));
}
