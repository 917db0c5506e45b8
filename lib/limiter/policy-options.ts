import { AlgorithmCode, compileLimit, type Limit, type LimitSpec } from '../algorithms/index.js';
import { durationMs, parseRate, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { oneOf, rejectUnknown, wholeAbove0, withoutUndefined } from '../common/validate.js';

export type AlgorithmName = 'token-bucket' | 'leaky-bucket' | 'sliding-window';

/** What happens to a policy's requests while the shared store cannot answer. */
export type FailureMode = 'local' | 'open' | 'closed';

/** The figures of a limit. */
export interface LimitOptions {
  /** Tokens per period, or both at once: `'100/min'`. */
  rate?: number | string;
  /** What the rate is counted in. Default one second. */
  period?: Duration;
  /** Tokens that a bucket holds; by default the number in `rate`. Not for sliding windows. */
  burst?: number;
}

/** A named rule. The initial values are the defaults. */
export class PolicyOptions implements LimitOptions {
  /**
   * `token-bucket` lets bursts pass and holds the average; `leaky-bucket` with `mode: 'shaper'`
   * makes requests wait so that they leave evenly; `sliding-window` counts the last period.
   */
  algorithm: AlgorithmName = 'token-bucket';
  rate?: number | string;
  period?: Duration;
  burst?: number;
  /** Leaky bucket: refuse what is too much, or delay what fits into the bucket. */
  mode: 'policer' | 'shaper' = 'policer';
  /** Shaper: requests that would have to wait longer are refused. Default: the bucket's length. */
  maxDelay?: Duration;
  /** Sliding window: into how many parts the period is cut. More is more exact, and larger. */
  subWindows = 10;
  /** Tokens that a request takes if it does not say. */
  cost = 1;
  /** Other figures for some callers, by name: `{ vip: { rate: 50 } }`. */
  tiers: Record<string, LimitOptions> = {};
  /** The tier of requests that name none, or one that is not there. Default: the policy's figures. */
  defaultTier?: string;
  /** `fleet`: one bucket per key for all processes; `node`: each process by itself. */
  scope: 'fleet' | 'node' = 'fleet';
  /** While the store is away: each node its share (`local`), let all pass, or none. */
  failureMode: FailureMode = 'local';
  /** Count what would be denied, and let it pass. */
  shadow = false;
  /** How many `acquire` calls may wait for one key. */
  maxWaiters = 1000;
}

export type PolicyInput = Partial<PolicyOptions>;

/** A policy, checked: its options and the limit of each tier. */
export interface CheckedPolicy {
  readonly name: string;
  readonly options: PolicyOptions;
  readonly limits: ReadonlyMap<string, Limit>;
  readonly defaultTier: string;
}

/** The tier whose figures stand in the policy itself. */
const BASE_TIER = 'default';
const NAME = /^[\w.-]{1,64}$/;
const MOST_SUB_WINDOWS = 120;
/** Keeps every figure that a bucket can reach a whole number below 2^53. */
const LONGEST_FILL_MS = 100 * 365 * 86_400_000;
const KNOWN_FIGURES: readonly (keyof LimitOptions)[] = ['rate', 'period', 'burst'];
const KNOWN_OPTIONS: readonly string[] = [
  ...KNOWN_FIGURES,
  ...Object.keys(new PolicyOptions()),
  'maxDelay',
  'defaultTier',
];

export function checkPolicy(name: string, input: PolicyInput): CheckedPolicy {
  const at = `policies.${name}`;
  if (!NAME.test(name)) {
    throw new InvalidArgumentError('policies', name, 'names of up to 64 letters, digits and _ . -');
  }
  if (input === null || typeof input !== 'object') {
    throw new InvalidArgumentError(at, input, 'an object with at least a rate');
  }
  rejectUnknown(at, input, KNOWN_OPTIONS);
  const options = Object.assign(new PolicyOptions(), withoutUndefined(input));
  oneOf(`${at}.algorithm`, options.algorithm, ['token-bucket', 'leaky-bucket', 'sliding-window']);
  oneOf(`${at}.mode`, options.mode, ['policer', 'shaper']);
  oneOf(`${at}.scope`, options.scope, ['fleet', 'node']);
  oneOf(`${at}.failureMode`, options.failureMode, ['local', 'open', 'closed']);
  wholeAbove0(`${at}.cost`, options.cost);
  wholeAbove0(`${at}.maxWaiters`, options.maxWaiters);
  wholeAbove0(`${at}.subWindows`, options.subWindows, MOST_SUB_WINDOWS);
  if (typeof options.shadow !== 'boolean') {
    throw new InvalidArgumentError(`${at}.shadow`, options.shadow, 'true or false');
  }
  const limits = tierLimits(at, options);
  const defaultTier = options.defaultTier ?? BASE_TIER;
  if (!limits.has(defaultTier)) {
    if (options.defaultTier === undefined) {
      throw new InvalidArgumentError(`${at}.rate`, options.rate, "a rate, or a 'defaultTier'");
    }
    oneOf(`${at}.defaultTier`, defaultTier, [...limits.keys()]);
  }
  for (const limit of limits.values()) {
    if (options.cost > limit.capacity) {
      throw new InvalidArgumentError(`${at}.cost`, options.cost, `at most ${limit.capacity}`);
    }
  }
  return { name, options, limits, defaultTier };
}

function tierLimits(at: string, options: PolicyOptions): Map<string, Limit> {
  const limits = new Map<string, Limit>();
  if (options.rate !== undefined) limits.set(BASE_TIER, checkLimit(at, options, options));
  for (const [tier, figures] of Object.entries(options.tiers)) {
    if (!NAME.test(tier)) {
      throw new InvalidArgumentError(`${at}.tiers`, tier, 'names of letters, digits and _ . -');
    }
    rejectUnknown(`${at}.tiers.${tier}`, figures, KNOWN_FIGURES);
    limits.set(tier, checkLimit(`${at}.tiers.${tier}`, inherit(options, figures), options));
  }
  return limits;
}

/** A tier has the policy's period, but its burst only where the tier has no rate of its own. */
function inherit(policy: PolicyOptions, tier: LimitOptions): LimitOptions {
  const rate = tier.rate ?? policy.rate;
  const period = tier.period ?? (typeof rate === 'string' ? undefined : policy.period);
  const burst = tier.burst ?? (tier.rate === undefined ? policy.burst : undefined);
  return { rate, period, burst };
}

function checkLimit(at: string, figures: LimitOptions, policy: PolicyOptions): Limit {
  const { rate, periodMs } = checkRate(at, figures);
  const isWindow = policy.algorithm === 'sliding-window';
  if (isWindow) wholeAbove0(`${at}.rate`, rate);
  if (isWindow && figures.burst !== undefined) {
    throw new InvalidArgumentError(`${at}.burst`, figures.burst, 'no burst for a sliding window');
  }
  const burst = figures.burst ?? Math.max(1, Math.floor(rate));
  wholeAbove0(`${at}.burst`, burst);
  if (!isWindow && (burst / rate) * periodMs > LONGEST_FILL_MS) {
    throw new InvalidArgumentError(`${at}.burst`, burst, 'a bucket that is full within 100 years');
  }
  const spec: LimitSpec = {
    algorithm: codeOf(policy),
    rate,
    periodMs,
    burst,
    maxDelayMs:
      policy.maxDelay === undefined ? Infinity : durationMs(policy.maxDelay, `${at}.maxDelay`),
    subWindows: policy.subWindows,
  };
  return compileLimit(spec);
}

function checkRate(at: string, figures: LimitOptions): { rate: number; periodMs: number } {
  const { rate } = figures;
  const parsed =
    typeof rate === 'string'
      ? parseRate(rate, `${at}.rate`)
      : { rate, periodMs: durationMs(figures.period ?? '1s', `${at}.period`) };
  if (typeof rate === 'string' && figures.period !== undefined) {
    throw new InvalidArgumentError(`${at}.period`, figures.period, 'no period beside a rate text');
  }
  if (typeof parsed.rate !== 'number' || !(parsed.rate > 0) || !Number.isFinite(parsed.rate)) {
    throw new InvalidArgumentError(`${at}.rate`, rate, 'a finite number above 0');
  }
  return { rate: parsed.rate, periodMs: parsed.periodMs };
}

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
