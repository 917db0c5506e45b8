import { CLOCK_STEP_MICROS, type Algorithm, type Outcome } from './algorithm.js';
import { notRefilled, type Limit } from './limit.js';

/**
 * A bucket of `capacity` tokens, full at first, into which tokens flow at a steady rate until it is
 * full again. A request takes its cost or, if the bucket holds less, takes nothing.
 *
 * Invariant: in any span Δ, at most capacity + rate × Δ tokens are taken.
 *
 * State: the level in units when it was last changed, below zero if the bucket owes some, and when
 * that was.
 */
export const tokenBucket: Algorithm = {
  width: () => 2,

  start(limit, state, at, now) {
    state[at] = limit.full;
    state[at + 1] = now;
  },

  measure(limit, state, at, cost, outcome: Outcome) {
    const now = outcome.nowMicros;
    const level = levelAt(limit, state, at, now);
    const left = level - cost * limit.perToken;
    if (left >= 0) {
      outcome.allowed = true;
      outcome.level = left;
      outcome.waitMicros = 0;
    } else {
      const behind = state[at + 1]! - now;
      outcome.allowed = false;
      outcome.level = level > 0 ? level : 0;
      outcome.waitMicros = Math.ceil(-left / limit.perMicro) + (behind > 0 ? behind : 0);
    }
  },

  commit(_limit, state, at, _cost, outcome) {
    const now = outcome.nowMicros;
    state[at] = outcome.level;
    if (now > state[at + 1]!) state[at + 1] = now;
  },

  refund(limit, state, at, now, cost) {
    const level = levelAt(limit, state, at, now) + cost * limit.perToken;
    state[at] = level < limit.full ? level : limit.full;
    if (now > state[at + 1]!) state[at + 1] = now;
  },

  refundLate(limit, state, at, now, cost, takenAt) {
    const level = levelAt(limit, state, at, now);
    const last = state[at + 1]!;
    const units = notRefilled(limit, cost, Math.max(now, last) - takenAt);
    if (units === 0) return;
    state[at] = Math.min(limit.full, level + units);
    if (now > last) state[at + 1] = now;
  },

  owe(limit, state, at, now, cost) {
    const level = levelAt(limit, state, at, now) - cost * limit.perToken;
    state[at] = Math.max(-limit.full, level);
    if (now > state[at + 1]!) state[at + 1] = now;
  },

  rescale(_from, to, state, at, factor) {
    state[at] = Math.min(to.full, Math.floor(state[at]! * factor));
  },

  carry(change, state, at, into, intoAt, now) {
    into[intoAt] = change.levelOf(levelAt(change.from, state, at, now));
    const last = state[at + 1]!;
    into[intoAt + 1] = now > last ? now : last;
  },

  recovered: (limit, state, at, now) => levelAt(limit, state, at, now) >= limit.full,

  lastUse: (_limit, state, at) => state[at + 1]!,

  resetMs: (limit, outcome) => Math.ceil((limit.full - outcome.level) / limit.perMs),
};

/** All the arithmetic there is: what was there, and what has flowed in since. */
function levelAt(limit: Limit, state: Float64Array, at: number, now: number): number {
  const elapsed = now - state[at + 1]!;
  if (elapsed <= 0) {
    if (elapsed < -CLOCK_STEP_MICROS) state[at + 1] = now;
    return state[at]!;
  }
  const level = state[at]! + elapsed * limit.perMicro;
  return level < limit.full ? level : limit.full;
}
