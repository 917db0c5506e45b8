import { type Limit, type LimitChange } from './limit.js';

/** The result of a measurement. One object is used again and again: read it before the next call. */
export class Outcome {
  /**
   * The instant that was asked about. It travels in here because a double that is an argument of
   * a call costs an allocation wherever V8 does not inline the call.
   */
  nowMicros = 0;
  allowed = false;
  /** Units left in the bucket: after the take if it was allowed, else as they are. */
  level = 0;
  /** Allowed: how long to hold the request back. Denied: when the same would be allowed. */
  waitMicros = 0;
}

/**
 * A clock that steps back by no more than this is waited for, so that time never runs backwards. A
 * larger step is the new base: levels are kept, and what comes back goes on from there.
 */
export const CLOCK_STEP_MICROS = 1_000_000;

/**
 * A way to count, as pure functions of (limit, state, now, cost).
 *
 * A key's state is `width` numbers in a larger array, from `at` on, so that a million keys are a
 * few arrays and not a million objects. `now` is in microseconds of any one clock, which may step
 * back: see {@link CLOCK_STEP_MICROS}.
 */
export interface Algorithm {
  /** How many numbers of state a key has. */
  width(limit: Limit): number;

  /** The state of a key that was never seen: nothing used. */
  start(limit: Limit, state: Float64Array, at: number, now: number): void;

  /**
   * Says whether `cost` would be allowed at the instant of the outcome, and changes nothing but the
   * base of a clock that has stepped back: else a bucket that denies would never fill again.
   */
  measure(limit: Limit, state: Float64Array, at: number, cost: number, outcome: Outcome): void;

  /** Takes what was just measured, with that outcome, and allowed. */
  commit(limit: Limit, state: Float64Array, at: number, cost: number, outcome: Outcome): void;

  /**
   * Gives back what was taken and not used; never more than the limit holds. A window looks at when
   * it was taken, if that is known; a bucket does not.
   */
  refund(
    limit: Limit,
    state: Float64Array,
    at: number,
    now: number,
    cost: number,
    takenAt?: number,
  ): void;

  /**
   * The same for a take that nobody knew of for a while. The bucket has refilled since, and others may
   * have used that; so only what has not flowed in again goes back, as if there had been no take.
   */
  refundLate(
    limit: Limit,
    state: Float64Array,
    at: number,
    now: number,
    cost: number,
    takenAt: number,
  ): void;

  /** Books what was used without having been taken, also if it is not there: up to one limit's worth. */
  owe(limit: Limit, state: Float64Array, at: number, now: number, cost: number): void;

  /** The same tokens in the units of another limit, `factor` times as many to a token. */
  rescale(from: Limit, to: Limit, state: Float64Array, at: number, factor: number): void;

  /**
   * The state under another limit of the same algorithm: settled under the old one until now, and
   * then as full as it was. `into` is where it lies already, unless the width is another one.
   */
  carry(
    change: LimitChange,
    state: Float64Array,
    at: number,
    into: Float64Array,
    intoAt: number,
    now: number,
  ): void;

  /** True when the state says no more than a new one would. */
  recovered(limit: Limit, state: Float64Array, at: number, now: number): boolean;

  /** The latest instant at which something was taken. */
  lastUse(limit: Limit, state: Float64Array, at: number): number;

  /** How long after that outcome all is back, if nothing more is taken. Rounded up. */
  resetMs(limit: Limit, outcome: Readonly<Outcome>): number;
}
