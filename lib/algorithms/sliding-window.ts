import { type Algorithm, type Outcome } from './algorithm.js';
import { type Limit } from './limit.js';

/**
 * At most `capacity` tokens in the period that ends now. The period is cut into sub-windows, each
 * with a count; the oldest, which the period covers only in part, counts in proportion.
 *
 * Invariant: in any span one sub-window shorter than the period, at most `capacity` are taken.
 *
 * State: the number of the newest sub-window used, then a ring of subWindows + 1 counts.
 * Used units are tokens × microseconds of a sub-window, so that the proportion is a whole number.
 */
export const slidingWindow: Algorithm = {
  width: (limit) => limit.subWindows + 2,

  start(limit, state, at, now) {
    state.fill(0, at, at + limit.subWindows + 2);
    state[at] = Math.floor(now / limit.perToken);
  },

  measure(limit, state, at, now, cost, outcome: Outcome) {
    const time = notBefore(limit, state, at, now);
    const used = usedAt(limit, state, at, time);
    const left = limit.full - used - cost * limit.perToken;
    if (left >= 0) {
      outcome.allowed = true;
      outcome.level = left;
      outcome.waitMicros = 0;
    } else {
      outcome.allowed = false;
      outcome.level = limit.full - used;
      outcome.waitMicros = time - now + waitFor(limit, state, at, time, -left);
    }
  },

  commit(limit, state, at, now, cost) {
    const current = advance(limit, state, at, now);
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

  recovered(limit, state, at, now) {
    return usedAt(limit, state, at, notBefore(limit, state, at, now)) === 0;
  },

  lastUse: (limit, state, at) => state[at]! * limit.perToken,

  resetMicros(limit, level, now) {
    if (level >= limit.full) return 0;
    const current = Math.floor(now / limit.perToken);
    return (current + limit.subWindows + 1) * limit.perToken - now;
  },
};

function notBefore(limit: Limit, state: Float64Array, at: number, now: number): number {
  const newest = state[at]! * limit.perToken;
  return now > newest ? now : newest;
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

function usedAt(limit: Limit, state: Float64Array, at: number, time: number): number {
  const width = limit.perToken;
  const current = Math.floor(time / width);
  const oldest = current - limit.subWindows;
  let whole = 0;
  for (let number = oldest + 1; number <= current; number++) {
    whole += countOf(limit, state, at, number);
  }
  const passed = time - current * width;
  return whole * width + countOf(limit, state, at, oldest) * (width - passed);
}

/** How long until `excess` units have slid out of the window, oldest sub-window first. */
function waitFor(
  limit: Limit,
  state: Float64Array,
  at: number,
  time: number,
  excess: number,
): number {
  const width = limit.perToken;
  const current = Math.floor(time / width);
  let wait = 0;
  let left = width - (time - current * width);
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
  const current = Math.floor(notBefore(limit, state, at, now) / limit.perToken);
  const first = Math.max(newest + 1, current - limit.subWindows);
  for (let number = first; number <= current; number++) state[slotOf(limit, at, number)] = 0;
  state[at] = current;
  return slotOf(limit, at, current);
}
