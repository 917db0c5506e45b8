import { type Algorithm, type Outcome } from './algorithm.js';
import { type LimitChange } from './limit-change.js';
import { type Limit } from './limit.js';

/**
 * At most `capacity` tokens in the period that ends now. The period is cut into sub-windows, each
 * with a count; the oldest, which the period covers only in part, counts in proportion.
 *
 * Invariant: in any span one sub-window shorter than the period, at most `capacity` are taken.
 *
 * State: the number of the newest sub-window used, then a ring of subWindows + 1 counts.
 * Time is counted in ticks, and used units are tokens × ticks, so that the proportion is whole.
 */
export const slidingWindow: Algorithm = {
  width: (limit) => limit.subWindows + 2,

  start(limit, state, at, now) {
    state.fill(0, at, at + limit.subWindows + 2);
    state[at] = numberAt(limit, ticksAt(limit, now));
  },

  measure(limit, state, at, cost, outcome: Outcome) {
    const now = outcome.nowMicros;
    const ticks = ticksNotBefore(limit, state, at, now);
    const used = usedAt(limit, state, at, ticks);
    const left = limit.full - used - cost * limit.perToken;
    if (left >= 0) {
      outcome.allowed = true;
      outcome.level = left;
      outcome.waitMicros = 0;
    } else {
      const enough = ticks + waitFor(limit, state, at, ticks, -left);
      outcome.allowed = false;
      // Time may have stepped back within a sub-window: then more counts than was ever admitted.
      outcome.level = Math.max(0, limit.full - used);
      outcome.waitMicros = enough * limit.tickMicros - now;
    }
  },

  commit(limit, state, at, cost, outcome) {
    const current = advance(limit, state, at, outcome.nowMicros);
    state[current] = state[current]! + cost;
  },

  refund(limit, state, at, now, cost) {
    advance(limit, state, at, now);
    // Newest first: what is given back was most likely taken last.
    const newest = state[at]!;
    for (let back = 0; back <= limit.subWindows && cost > 0; back++) {
      const slot = slotOf(limit, at, newest - back);
      const given = Math.min(cost, state[slot]!);
      state[slot] = state[slot]! - given;
      cost -= given;
    }
  },

  /** It was counted in the sub-window of the take, and nothing flows in: there it is as if it had not been. */
  refundLate(limit, state, at, _now, cost, takenAt) {
    const number = numberAt(limit, ticksAt(limit, takenAt));
    const given = Math.min(cost, countOf(limit, state, at, number));
    if (given > 0) state[slotOf(limit, at, number)]! -= given;
  },

  owe(limit, state, at, now, cost) {
    const current = advance(limit, state, at, now);
    let counted = 0;
    for (let slot = at + 1; slot <= at + 1 + limit.subWindows; slot++) counted += state[slot]!;
    state[current]! += Math.max(0, Math.min(cost, 2 * limit.capacity - counted));
  },

  rescale() {
    // Counts are tokens, whatever the limit.
  },

  carry(change, state, at, into, intoAt, now) {
    if (isCutAlike(change)) scaleCounts(change, state, at, now);
    else recut(change, state, at, into, intoAt, now);
  },

  recovered(limit, state, at, now) {
    return usedAt(limit, state, at, ticksNotBefore(limit, state, at, now)) === 0;
  },

  lastUse: (limit, state, at) => state[at]! * limit.perToken * limit.tickMicros,

  resetMs(limit, outcome) {
    if (outcome.level >= limit.full) return 0;
    const now = outcome.nowMicros;
    const forgotten = numberAt(limit, ticksAt(limit, now)) + limit.subWindows + 1;
    return Math.ceil((forgotten * limit.perToken * limit.tickMicros - now) / 1000);
  },
};

/** One microsecond is the finest tick, and the usual one; it may have a fraction. */
function ticksAt(limit: Limit, now: number): number {
  return limit.tickMicros === 1 ? now : Math.floor(now / limit.tickMicros);
}

function ticksNotBefore(limit: Limit, state: Float64Array, at: number, now: number): number {
  const newest = state[at]! * limit.perToken;
  const ticks = ticksAt(limit, now);
  return ticks > newest ? ticks : newest;
}

/** The number of the sub-window that an instant falls into. */
function numberAt(limit: Limit, ticks: number): number {
  return Math.floor(ticks / limit.perToken);
}

/** Where the count of a sub-window lives. Numbers before the first window wrap like the others. */
function slotOf(limit: Limit, at: number, number: number): number {
  const ring = limit.subWindows + 1;
  return at + 1 + (((number % ring) + ring) % ring);
}

/** The count of a sub-window; those newer than the newest one used were never written. */
function countOf(limit: Limit, state: Float64Array, at: number, number: number): number {
  const newest = state[at]!;
  if (number > newest || number < newest - limit.subWindows) return 0;
  return state[slotOf(limit, at, number)]!;
}

function usedAt(limit: Limit, state: Float64Array, at: number, ticks: number): number {
  const width = limit.perToken;
  const current = numberAt(limit, ticks);
  const oldest = current - limit.subWindows;
  let whole = 0;
  for (let number = oldest + 1; number <= current; number++) {
    whole += countOf(limit, state, at, number);
  }
  const passed = ticks - current * width;
  return whole * width + countOf(limit, state, at, oldest) * (width - passed);
}

/** How many ticks until `excess` units have slid out of the window, oldest sub-window first. */
function waitFor(
  limit: Limit,
  state: Float64Array,
  at: number,
  ticks: number,
  excess: number,
): number {
  const width = limit.perToken;
  const current = numberAt(limit, ticks);
  let wait = 0;
  let left = width - (ticks - current * width);
  for (let number = current - limit.subWindows; number <= current; number++) {
    const count = countOf(limit, state, at, number);
    if (count * left >= excess) return wait + Math.ceil(excess / count);
    excess -= count * left;
    wait += left;
    left = width;
  }
  return wait;
}

/** Moves the ring to the sub-window of `now` and returns where its count lives. */
function advance(limit: Limit, state: Float64Array, at: number, now: number): number {
  const newest = state[at]!;
  const current = numberAt(limit, ticksNotBefore(limit, state, at, now));
  const first = Math.max(newest + 1, current - limit.subWindows);
  for (let number = first; number <= current; number++) state[slotOf(limit, at, number)] = 0;
  state[at] = current;
  return slotOf(limit, at, current);
}

function isCutAlike({ from, to }: LimitChange): boolean {
  return (
    from.perToken === to.perToken &&
    from.tickMicros === to.tickMicros &&
    from.subWindows === to.subWindows
  );
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
  const newest = slotOf(from, at, state[at]!);
  let sum = 0;
  let scaled = 0;
  for (let back = 0; back <= from.subWindows; back++) {
    const slot = newest - back > at ? newest - back : newest - back + from.subWindows + 1;
    const count = state[slot]!;
    if (count === 0) continue;
    sum += count;
    const upTo = -tokens.of(-sum);
    state[slot] = upTo - scaled;
    scaled = upTo;
  }
}

/** A window cut in another way has its used part as if it had just been taken. */
function recut(
  { from, to, unitsToTokens }: LimitChange,
  state: Float64Array,
  at: number,
  into: Float64Array,
  intoAt: number,
  now: number,
): void {
  const ticks = ticksNotBefore(from, state, at, now);
  const left = Math.max(0, from.full - usedAt(from, state, at, ticks));
  const number = numberAt(to, ticksAt(to, ticks * from.tickMicros));
  into.fill(0, intoAt, intoAt + to.subWindows + 2);
  into[intoAt] = number;
  into[slotOf(to, intoAt, number)] = to.capacity - Math.max(0, unitsToTokens.of(left));
}
