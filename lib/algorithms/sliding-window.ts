import { CLOCK_STEP_MICROS, type Algorithm, type Outcome } from './algorithm.js';
import { type Limit, type LimitChange } from './limit.js';

/**
 * At most `capacity` tokens in the period that ends now. Every period is cut into the same
 * sub-windows, each with a count; the one of now and the subWindows − 1 before it count, whole.
 *
 * Tokens taken in a sub-window are forgotten exactly one period after the sub-window began: so no
 * later than a period after they were taken, and less than a sub-window earlier than that.
 *
 * Invariants: a caller that never asks for more than `capacity` in a period is never denied; and in
 * any span one sub-window shorter than the period at most `capacity` are taken, not counting what of
 * these was given back.
 *
 * State: the number of the newest sub-window used, the sum of the counts, then a ring of counts.
 * Time is counted in whole microseconds.
 */
export const slidingWindow: Algorithm = {
  width: (limit) => limit.subWindows + FIRST_COUNT,

  start(limit, state, at, now) {
    state.fill(0, at, at + limit.subWindows + FIRST_COUNT);
    state[at] = numberAt(limit, Math.floor(now));
  },

  measure(limit, state, at, cost, outcome: Outcome) {
    const now = Math.floor(outcome.nowMicros);
    const current = currentAt(limit, state, at, now);
    const unused = limit.full - usedIn(limit, state, at, current);
    const left = unused - cost;
    if (left >= 0) {
      outcome.allowed = true;
      outcome.level = left;
      outcome.waitMicros = 0;
    } else {
      outcome.allowed = false;
      // Of a limit that was lowered meanwhile more may have been used than it has.
      outcome.level = unused > 0 ? unused : 0;
      outcome.waitMicros = forgottenAt(limit, state, at, current, -left) - now;
    }
  },

  commit(limit, state, at, cost, outcome) {
    const current = advance(limit, state, at, outcome.nowMicros);
    state[current] = state[current]! + cost;
    state[at + 1] = state[at + 1]! + cost;
  },

  /**
   * Out of the sub-window of the take, or an earlier one, or if it is not known when that was, the
   * oldest: these count no longer than the tokens would have. Were later ones to go, a span could have
   * them as well as what is taken in their place, long after the take would have been forgotten.
   */
  refund(limit, state, at, now, cost, takenAt) {
    advance(limit, state, at, now);
    const newest = state[at]!;
    const oldest = newest - limit.subWindows + 1;
    const taken = takenAt === undefined ? oldest : numberAt(limit, Math.floor(takenAt));
    if (taken < oldest) return;
    for (let number = Math.min(taken, newest); number >= oldest; number--) {
      cost -= giveBack(limit, state, at, number, cost);
    }
    for (let number = taken + 1; number <= newest; number++) {
      cost -= giveBack(limit, state, at, number, cost);
    }
  },

  /** It was counted in the sub-window of the take, and nothing flows in: there it is as if it had not been. */
  refundLate(limit, state, at, now, cost, takenAt) {
    const current = currentAt(limit, state, at, Math.floor(now));
    const number = numberAt(limit, Math.floor(takenAt));
    if (number > state[at]! || number <= current - limit.subWindows) return;
    if (state[slotOf(limit, at, number)] === 0) return;
    advance(limit, state, at, now);
    giveBack(limit, state, at, number, cost);
  },

  owe(limit, state, at, now, cost) {
    const current = advance(limit, state, at, now);
    const more = Math.max(0, Math.min(cost, 2 * limit.full - state[at + 1]!));
    state[current] = state[current]! + more;
    state[at + 1] = state[at + 1]! + more;
  },

  rescale() {
    // Counts are tokens, whatever the limit.
  },

  carry(change, state, at, into, intoAt, now) {
    if (isCutAlike(change)) scaleCounts(change, state, at, now);
    else recut(change, state, at, into, intoAt, now);
  },

  recovered(limit, state, at, now) {
    return usedIn(limit, state, at, currentAt(limit, state, at, Math.floor(now))) === 0;
  },

  lastUse: (limit, state, at) => startOf(limit, state[at]!),

  /** The newest of what is used may be from now, and then it takes that long. */
  resetMs(limit, outcome) {
    if (outcome.level >= limit.full) return 0;
    const now = Math.floor(outcome.nowMicros);
    const forgotten = startOf(limit, numberAt(limit, now) + limit.subWindows);
    return Math.ceil((forgotten - now) / 1000);
  },
};

const FIRST_COUNT = 2;

/**
 * The number of the sub-window that an instant falls into. Each period begins anew, so that a
 * sub-window begins exactly one period after the one of the same place in the period before; the
 * last one is shorter where the sub-windows do not divide the period.
 */
function numberAt({ periodMicros, subWindowMicros, subWindows }: Limit, now: number): number {
  const periods = Math.floor(now / periodMicros);
  return periods * subWindows + Math.floor((now - periods * periodMicros) / subWindowMicros);
}

/** The instant at which a sub-window begins. */
function startOf({ periodMicros, subWindowMicros, subWindows }: Limit, number: number): number {
  const periods = Math.floor(number / subWindows);
  return periods * periodMicros + (number - periods * subWindows) * subWindowMicros;
}

/** Where the count of a sub-window lives. Numbers before the first period wrap like the others. */
function slotOf({ subWindows }: Limit, at: number, number: number): number {
  return at + FIRST_COUNT + number - Math.floor(number / subWindows) * subWindows;
}

/** The sub-window of now, or the newest one used if the clock has stepped back a little. */
function currentAt(limit: Limit, state: Float64Array, at: number, now: number): number {
  const newest = state[at]!;
  const number = numberAt(limit, now);
  if (number >= newest) return number;
  if (startOf(limit, newest) - now <= CLOCK_STEP_MICROS) return newest;
  moveTo(limit, state, at, number);
  return number;
}

/** The newest sub-window gets another number, and all others with it: they age from there. */
function moveTo(limit: Limit, state: Float64Array, at: number, number: number): void {
  const newest = state[at]!;
  const before = state.slice(at, at + limit.subWindows + FIRST_COUNT);
  for (let back = 0; back < limit.subWindows; back++) {
    state[slotOf(limit, at, number - back)] = before[slotOf(limit, 0, newest - back)]!;
  }
  state[at] = number;
}

/** The tokens that count in a sub-window that is not before the newest one used. */
function usedIn(limit: Limit, state: Float64Array, at: number, current: number): number {
  const newest = state[at]!;
  const used = state[at + 1]!;
  if (current === newest || used === 0) return used;
  if (current >= newest + limit.subWindows) return 0;
  let left = used;
  for (let number = newest + 1; number <= current; number++) {
    left -= state[slotOf(limit, at, number)]!;
  }
  return left;
}

/** When so many tokens will have been forgotten, oldest sub-window first; all of them at the latest. */
function forgottenAt(
  limit: Limit,
  state: Float64Array,
  at: number,
  current: number,
  tokens: number,
): number {
  const newest = state[at]!;
  const end = at + FIRST_COUNT + limit.subWindows;
  let number = current - limit.subWindows;
  let slot = slotOf(limit, at, number);
  while (tokens > 0 && number < current) {
    number++;
    if (++slot === end) slot = at + FIRST_COUNT;
    if (number <= newest) tokens -= state[slot]!;
  }
  return startOf(limit, number + limit.subWindows);
}

/** Moves the ring to the sub-window of `now` and returns where its count lives. */
function advance(limit: Limit, state: Float64Array, at: number, now: number): number {
  const current = currentAt(limit, state, at, Math.floor(now));
  if (current !== state[at]!) {
    state[at + 1] = usedIn(limit, state, at, current);
    const first = Math.max(state[at]! + 1, current - limit.subWindows + 1);
    for (let number = first; number <= current; number++) state[slotOf(limit, at, number)] = 0;
    state[at] = current;
  }
  return slotOf(limit, at, current);
}

/** Takes up to so much back out of a sub-window, and says how much that was. */
function giveBack(
  limit: Limit,
  state: Float64Array,
  at: number,
  number: number,
  cost: number,
): number {
  const slot = slotOf(limit, at, number);
  const given = Math.min(cost, state[slot]!);
  state[slot] = state[slot]! - given;
  state[at + 1] = state[at + 1]! - given;
  return given;
}

function isCutAlike({ from, to }: LimitChange): boolean {
  return from.periodMicros === to.periodMicros && from.subWindowMicros === to.subWindowMicros;
}

/**
 * Sums from the newest sub-window back are scaled and rounded up, not each count: so at any later
 * instant as much counts as was used in proportion, and less than one token more.
 */
function scaleCounts(
  { from, tokens }: LimitChange,
  state: Float64Array,
  at: number,
  now: number,
): void {
  advance(from, state, at, now);
  const newest = state[at]!;
  let sum = 0;
  let scaled = 0;
  for (let back = 0; back < from.subWindows; back++) {
    const slot = slotOf(from, at, newest - back);
    const count = state[slot]!;
    if (count === 0) continue;
    sum += count;
    const upTo = -tokens.of(-sum);
    state[slot] = upTo - scaled;
    scaled = upTo;
  }
  state[at + 1] = scaled;
}

/** A window cut in another way has its used part as if it had just been taken. */
function recut(
  { from, to, tokens }: LimitChange,
  state: Float64Array,
  at: number,
  into: Float64Array,
  intoAt: number,
  now: number,
): void {
  const micros = Math.floor(now);
  const current = currentAt(from, state, at, micros);
  const left = Math.max(0, from.full - usedIn(from, state, at, current));
  const used = to.full - Math.max(0, tokens.of(left));
  slidingWindow.start(to, into, intoAt, Math.max(micros, startOf(from, current)));
  into[intoAt + 1] = used;
  into[slotOf(to, intoAt, into[intoAt]!)] = used;
}
