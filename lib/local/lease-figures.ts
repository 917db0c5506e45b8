import { type Limit } from '../algorithms/limit.js';
import { type QuotaLimits } from '../algorithms/quota/quota-limits.js';

/*
 * The figures of both lease engines: that of the quota (app-tokens, stock-plan, lease-calls) and that
 * of hot keys (limit-leases, lease-sizing). Their proofs differ, their proportions do not.
 */

/** Stock is kept for a little more than the demand of the time that a call takes. */
export const HEADROOM = 1.5;

/** Requests within a horizon that make a stock worth having, and are enough to tell a rate by. */
export const EARNING = 4;

/** Requests of an app per horizon, in the mean, below which its stock would be idle most of the time. */
export const THIN = 0.1;

/** A lease of 1.5 horizons that is refilled at this part lasts one horizon between calls, and a little more. */
export const APP_REFILL_PART = 0.3;
/** The same for a key, whose calls wait for no other. */
export const KEY_REFILL_PART = 1 / 3;

/**
 * After a grant of a key's tokens that fell short, and after a failure, the store is left alone for so
 * long. The pace of a quota is an option, with the same default.
 */
export const KEY_PACE_MICROS = 50_000;

const SHORTEST_HORIZON_MICROS = 10_000;
const LONGEST_HORIZON_MICROS = 100_000;

/** For how long a lease of a quota should last: a quarter of the time in which the capacity fills the burst. */
export function quotaHorizonMicros({ capacity, depth, apps }: QuotaLimits): number {
  const rate = capacity === 0 ? apps.reduce((sum, app) => sum + app.burst, 0) : capacity;
  const burst = capacity === 0 ? apps.reduce((sum, app) => sum + app.stockDepth, 0) : depth;
  return horizonMicros(burst / rate);
}

/** The same for a lease of a key: a quarter of the time in which its bucket fills. */
export function keyHorizonMicros({ full, perMicro }: Limit): number {
  return horizonMicros(full / perMicro);
}

function horizonMicros(fillMicros: number): number {
  return Math.min(LONGEST_HORIZON_MICROS, Math.max(SHORTEST_HORIZON_MICROS, fillMicros / 4));
}
