import { AlgorithmCode, compileLimit, type Limit, type LimitSpec } from '../algorithms/limit.js';
import { durationMs, parseRate, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { wholeAbove0 } from '../common/validate.js';
import { type PolicyOptions } from './policy-options.js';

/** The figures of a limit. */
export interface LimitOptions {
  /** Tokens per period, or both at once: `'100/min'`. */
  rate?: number | string;
  /** What the rate is counted in. Default one second. */
  period?: Duration;
  /** Tokens that a bucket holds; by default the number in `rate`. Not for sliding windows. */
  burst?: number;
}

export const KNOWN_FIGURES: readonly (keyof LimitOptions)[] = ['rate', 'period', 'burst'];
export const DEFAULT_PERIOD: Duration = '1s';
const DEFAULT_PERIOD_MS = durationMs(DEFAULT_PERIOD, 'period');
/** Keeps every figure that a bucket can reach a whole number below 2^53. */
const LONGEST_FILL_MS = 100 * 365 * 86_400_000;

/** A tier has the policy's period, but its burst only where the tier has no rate of its own. */
export function inherit(at: string, policy: PolicyOptions, tier: LimitOptions): LimitOptions {
  const isText = typeof policy.rate === 'string';
  const base = isText ? parseRate(policy.rate as string, `${at}.rate`) : undefined;
  const rate = tier.rate === undefined ? (base?.rate ?? policy.rate) : tier.rate;
  const inherited = typeof rate === 'string' ? undefined : (base?.periodMs ?? policy.period);
  const period = tier.period === undefined ? inherited : tier.period;
  const burst = tier.burst === undefined && tier.rate === undefined ? policy.burst : tier.burst;
  return { rate, period, burst };
}

/** The limit of a tier, or of the policy itself. */
export function checkLimit(at: string, figures: LimitOptions, policy: PolicyOptions): Limit {
  const { rate, periodMs } = checkRate(at, figures);
  const isWindow = policy.algorithm === 'sliding-window';
  if (isWindow) wholeAbove0(`${at}.rate`, rate);
  if (isWindow && figures.burst !== undefined) {
    throw new InvalidArgumentError(`${at}.burst`, figures.burst, 'no burst for a sliding window');
  }
  const burst = figures.burst === undefined ? Math.max(1, Math.floor(rate)) : figures.burst;
  wholeAbove0(`${at}.burst`, burst);
  if (!isWindow && (burst / rate) * periodMs > LONGEST_FILL_MS) {
    throw new InvalidArgumentError(`${at}.burst`, burst, 'a bucket that is full within 100 years');
  }
  const { maxDelay } = policy;
  const spec: LimitSpec = {
    algorithm: codeOf(policy),
    rate,
    periodMs,
    burst,
    maxDelayMs: maxDelay === undefined ? Infinity : durationMs(maxDelay, `${at}.maxDelay`),
    subWindows: policy.subWindows,
  };
  return compileLimit(spec);
}

function checkRate(at: string, figures: LimitOptions): { rate: number; periodMs: number } {
  const { rate, period } = figures;
  if (typeof rate === 'string' && period !== undefined) {
    throw new InvalidArgumentError(`${at}.period`, period, 'no period beside a rate text');
  }
  const parsed =
    typeof rate === 'string'
      ? parseRate(rate, `${at}.rate`)
      : { rate, periodMs: periodMsOf(period, `${at}.period`) };
  if (typeof parsed.rate !== 'number' || !(parsed.rate > 0) || !Number.isFinite(parsed.rate)) {
    throw new InvalidArgumentError(`${at}.rate`, rate, 'a finite number above 0');
  }
  return { rate: parsed.rate, periodMs: parsed.periodMs };
}

const periodMsOf = (period: Duration | undefined, field: string): number =>
  period === undefined ? DEFAULT_PERIOD_MS : durationMs(period, field);

function codeOf(policy: PolicyOptions): AlgorithmCode {
  switch (policy.algorithm) {
    case 'token-bucket':
      return AlgorithmCode.TokenBucket;
    case 'leaky-bucket':
      return policy.mode === 'shaper' ? AlgorithmCode.LeakyShaper : AlgorithmCode.LeakyPolicer;
    case 'sliding-window':
      return AlgorithmCode.SlidingWindow;
  }
}
