import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { rejectUnknown, wholeAbove0, wholeCost } from '../common/validate.js';
import { Outcome, type Algorithm } from './algorithm.js';
import { leakyBucket } from './leaky-bucket.js';
import { AlgorithmCode, bucketLimit, windowLimit, type BucketCode, type Limit } from './limit.js';
import { slidingWindow } from './sliding-window.js';
import { tokenBucket } from './token-bucket.js';

/** The outcome of a request. */
export interface BucketOutcome {
  readonly allowed: boolean;
  /** Whole tokens that are left. */
  readonly remaining: number;
  /** Allowed by a shaper: how long to hold it back. Denied: when the same would be allowed. */
  readonly waitMs: number;
}

/** The figures of a bucket. */
export interface BucketOptions {
  /** Tokens that it holds. */
  readonly capacity: number;
  /** Tokens that flow in, or leak out, in each period. */
  readonly rate: number;
  /** Default: a second. */
  readonly period?: Duration;
}

/** The figures of a leaky bucket, and whether it denies or delays. */
export interface LeakyBucketOptions extends BucketOptions {
  /** A policer lets pass at once or denies; a shaper makes requests wait, one after the other. */
  readonly mode?: 'policer' | 'shaper';
  /** Shaper only: nobody is made to wait longer. */
  readonly maxDelay?: Duration;
}

/** The figures of a window. */
export interface SlidingWindowOptions {
  /** Tokens that are there in any period. */
  readonly capacity: number;
  readonly period?: Duration;
  /** Into how many parts the period is cut. */
  readonly subWindows?: number;
}

const MOST_TOKENS = 1e9;
const MOST_SUB_WINDOWS = 1000;
const SUB_WINDOWS = 10;
const SECOND: Duration = '1s';

/**
 * One bucket by itself. It has no clock: `nowMs` is an argument, of any clock that does not run backwards,
 * such as `performance.now()`.
 */
export abstract class Bucket {
  private readonly state: Float64Array;
  private readonly outcome = new Outcome();

  /** @internal */
  protected constructor(
    private readonly limit: Limit,
    private readonly algorithm: Algorithm,
    nowMs: number,
  ) {
    this.state = new Float64Array(algorithm.width(limit));
    algorithm.start(limit, this.state, 0, nowMs * 1000);
  }

  get capacity(): number {
    return this.limit.capacity;
  }

  /** Takes the tokens if all of them are there. */
  take(nowMs: number, cost = 1): BucketOutcome {
    const { limit, algorithm, state, outcome } = this;
    this.measure(nowMs, cost);
    if (outcome.allowed) algorithm.commit(limit, state, 0, cost, outcome);
    return this.described();
  }

  /** The outcome of a `take` at that instant, without taking anything. */
  peek(nowMs: number, cost = 1): BucketOutcome {
    this.measure(nowMs, cost);
    return this.described();
  }

  /** Gives tokens back that were taken and not used. */
  refund(nowMs: number, cost = 1): void {
    wholeCost(cost);
    this.algorithm.refund(this.limit, this.state, 0, nowMs * 1000, cost);
  }

  private measure(nowMs: number, cost: number): void {
    const { limit, algorithm, state, outcome } = this;
    wholeCost(cost);
    if (cost > limit.capacity) {
      throw new InvalidArgumentError('cost', cost, `at most ${limit.capacity}: it holds no more`);
    }
    outcome.nowMicros = nowMs * 1000;
    algorithm.measure(limit, state, 0, cost, outcome);
  }

  private described(): BucketOutcome {
    const { allowed, level, waitMicros } = this.outcome;
    const remaining = Math.floor(level / this.limit.perToken);
    return { allowed, remaining, waitMs: waitMicros / 1000 };
  }
}

/** Full at first; `rate` tokens flow in per period until it is full again. */
export class TokenBucket extends Bucket {
  constructor(options: BucketOptions, nowMs = 0) {
    rejectUnknown('tokenBucket', options, ['capacity', 'rate', 'period']);
    super(limitOf('tokenBucket', AlgorithmCode.TokenBucket, options), tokenBucket, nowMs);
  }
}

/** Empty at first; requests pour in, and `rate` tokens leak out per period. */
export class LeakyBucket extends Bucket {
  constructor(options: LeakyBucketOptions, nowMs = 0) {
    rejectUnknown('leakyBucket', options, ['capacity', 'rate', 'period', 'mode', 'maxDelay']);
    const { mode = 'policer', maxDelay } = options;
    const isShaper = mode === 'shaper';
    if (!isShaper && (mode !== 'policer' || maxDelay !== undefined)) {
      const [field, value] = maxDelay === undefined ? ['mode', mode] : ['maxDelay', maxDelay];
      throw new InvalidArgumentError(
        `leakyBucket.${field}`,
        value,
        "the mode 'shaper' or 'policer'",
      );
    }
    const code = isShaper ? AlgorithmCode.LeakyShaper : AlgorithmCode.LeakyPolicer;
    const maxDelayMs =
      maxDelay === undefined ? Infinity : durationMs(maxDelay, 'leakyBucket.maxDelay');
    super(limitOf('leakyBucket', code, options, maxDelayMs), leakyBucket, nowMs);
  }
}

/** So many tokens in any period, counted by sub-windows. */
export class SlidingWindow extends Bucket {
  constructor(options: SlidingWindowOptions, nowMs = 0) {
    rejectUnknown('slidingWindow', options, ['capacity', 'period', 'subWindows']);
    const { capacity, period = SECOND, subWindows = SUB_WINDOWS } = options;
    wholeAbove0('slidingWindow.capacity', capacity, MOST_TOKENS);
    wholeAbove0('slidingWindow.subWindows', subWindows, MOST_SUB_WINDOWS);
    if (subWindows < 2) {
      throw new InvalidArgumentError('slidingWindow.subWindows', subWindows, 'at least 2');
    }
    const periodMs = durationMs(period, 'slidingWindow.period');
    super(windowLimit(capacity, periodMs, subWindows), slidingWindow, nowMs);
  }
}

function limitOf(
  at: string,
  algorithm: BucketCode,
  { capacity, rate, period = SECOND }: BucketOptions,
  maxDelayMs = Infinity,
): Limit {
  wholeAbove0(`${at}.capacity`, capacity, MOST_TOKENS);
  if (!(typeof rate === 'number' && rate > 0 && rate <= MOST_TOKENS)) {
    throw new InvalidArgumentError(`${at}.rate`, rate, `a number above 0, up to ${MOST_TOKENS}`);
  }
  const periodMs = durationMs(period, `${at}.period`);
  return bucketLimit(algorithm, rate, periodMs, capacity, maxDelayMs);
}
