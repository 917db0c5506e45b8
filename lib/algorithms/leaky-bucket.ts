import { CLOCK_STEP_MICROS, type Algorithm, type Outcome } from './algorithm.js';
import { AlgorithmCode, notRefilled, type Limit } from './limit.js';

/**
 * A bucket with a hole: requests pour in their cost, water leaks out at a steady rate, and what
 * would make the bucket run over is denied.
 *
 * A policer lets the request go at once, so it decides exactly like a token bucket of the same
 * figures. A shaper makes the request wait until the water before it has leaked, so requests leave
 * at the rate and never faster; the bucket is then the queue, `capacity` places long.
 *
 * Invariant: nothing is poured in above capacity; a shaper starts at most 1 + rate × Δ tokens in Δ.
 * Tokens that were used without having been poured in may bring the water to twice the capacity.
 *
 * State: the water in units when it was last changed, and when that was.
 */
export const leakyBucket: Algorithm = {
  width: () => 2,

  start(_limit, state, at, now) {
    state[at] = 0;
    state[at + 1] = now;
  },

  measure(limit, state, at, cost, outcome: Outcome) {
    const now = outcome.nowMicros;
    const water = waterAt(limit, state, at, now);
    const last = state[at + 1]!;
    const behind = last > now ? last - now : 0;
    const filled = water + cost * limit.perToken;
    let refusal = 0;
    let delay = 0;
    if (!(filled <= limit.full))
      refusal = behind + Math.ceil((filled - limit.full) / limit.perMicro);
    if (limit.algorithm === AlgorithmCode.LeakyShaper) {
      delay = behind + Math.ceil(water / limit.perMicro);
      if (delay - limit.maxDelayMicros > refusal) refusal = delay - limit.maxDelayMicros;
    }
    if (refusal === 0) {
      outcome.allowed = true;
      outcome.level = limit.full - filled;
      outcome.waitMicros = delay;
    } else {
      outcome.allowed = false;
      outcome.level = Math.max(0, limit.full - water);
      outcome.waitMicros = refusal;
    }
  },

  commit(limit, state, at, _cost, outcome) {
    const now = outcome.nowMicros;
    state[at] = limit.full - outcome.level;
    if (now > state[at + 1]!) state[at + 1] = now;
  },

  refund(limit, state, at, now, cost) {
    const water = waterAt(limit, state, at, now) - cost * limit.perToken;
    state[at] = water > 0 ? water : 0;
    if (now > state[at + 1]!) state[at + 1] = now;
  },

  refundLate(limit, state, at, now, cost, takenAt) {
    const water = waterAt(limit, state, at, now);
    const last = state[at + 1]!;
    const units = notRefilled(limit, cost, Math.max(now, last) - takenAt);
    if (units === 0) return;
    state[at] = Math.max(0, water - units);
    if (now > last) state[at + 1] = now;
  },

  owe(limit, state, at, now, cost) {
    const water = waterAt(limit, state, at, now) + cost * limit.perToken;
    state[at] = Math.min(2 * limit.full, water);
    if (now > state[at + 1]!) state[at + 1] = now;
  },

  /** The room that is left is what is carried over, as it is for a token bucket. */
  rescale(from, to, state, at, factor) {
    const room = Math.floor((from.full - state[at]!) * factor);
    state[at] = to.full - Math.min(to.full, room);
  },

  /** Water rounds up; and what fitted into the bucket fits into the new one. */
  carry(change, state, at, into, intoAt, now) {
    const { from, to } = change;
    into[intoAt] = to.full - change.levelOf(from.full - waterAt(from, state, at, now));
    const last = state[at + 1]!;
    into[intoAt + 1] = now > last ? now : last;
  },

  recovered: (limit, state, at, now) => waterAt(limit, state, at, now) <= 0,

  lastUse: (_limit, state, at) => state[at + 1]!,

  resetMs: (limit, outcome) => Math.ceil((limit.full - outcome.level) / limit.perMs),
};

/** All the arithmetic there is: what was there, less what has leaked since. */
function waterAt(limit: Limit, state: Float64Array, at: number, now: number): number {
  const elapsed = now - state[at + 1]!;
  if (elapsed <= 0) {
    if (elapsed < -CLOCK_STEP_MICROS) state[at + 1] = now;
    return state[at]!;
  }
  const water = state[at]! - elapsed * limit.perMicro;
  return water > 0 ? water : 0;
}
