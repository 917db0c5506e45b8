import { LARGEST_EXACT, reduce, toFraction } from '../common/fraction.js';

/** How a limit counts; the numbers are what the scripts in `lua/` know them by. */
export enum AlgorithmCode {
  TokenBucket = 1,
  LeakyPolicer = 2,
  LeakyShaper = 3,
  SlidingWindow = 4,
}

/** The algorithms whose buckets refill as time goes by. */
export type BucketCode = Exclude<AlgorithmCode, AlgorithmCode.SlidingWindow>;

/**
 * A limit in whole numbers.
 *
 * Levels are counted in units chosen so that a token and the refill of one microsecond are both a
 * whole number of them, and a full bucket stays below 2^52. Sums and products of such numbers are
 * exact in a double, in JavaScript as in Lua; so nothing drifts, and the two never disagree.
 */
export interface Limit {
  readonly algorithm: AlgorithmCode;
  /** Tokens in a full bucket, or in a whole window. */
  readonly capacity: number;
  /** Units in one token; 1 for a sliding window. */
  readonly perToken: number;
  /** Units that come back in one microsecond; 0 for a sliding window. */
  readonly perMicro: number;
  readonly perMs: number;
  /** Units in a full bucket. */
  readonly full: number;
  readonly maxDelayMicros: number;
  /** Sliding window, and 0 else: the period, its sub-windows, and how many those are. */
  readonly periodMicros: number;
  readonly subWindowMicros: number;
  readonly subWindows: number;
  /** After half of it without a change the state is as new; after all of it a store forgets it. */
  readonly ttlMs: number;
}

/** Stands for "no bound" where infinity does not travel: about 285 years. */
const UNBOUNDED_MICROS = LARGEST_EXACT;

/**
 * The limit of a bucket that holds `burst` tokens, of which `rate` come back per period. A shaper makes no request
 * wait longer than `maxDelayMs`.
 */
export function bucketLimit(
  algorithm: BucketCode,
  rate: number,
  periodMs: number,
  burst: number,
  maxDelayMs = Infinity,
): Limit {
  const periodMicros = Math.round(periodMs * 1000);
  // Half, so that two levels can be added up and still be exact.
  const largest = Math.floor(LARGEST_EXACT / 2 / burst);
  const { numerator, denominator } = toFraction(rate, periodMicros, largest);
  const fillMs = (burst * periodMs) / rate;
  return {
    algorithm,
    capacity: burst,
    perToken: denominator,
    perMicro: numerator,
    perMs: numerator * 1000,
    full: burst * denominator,
    maxDelayMicros: microsOrUnbounded(maxDelayMs),
    periodMicros: 0,
    subWindowMicros: 0,
    subWindows: 0,
    ttlMs: Math.max(1, Math.ceil(2 * fillMs)),
  };
}

/** The limit of a sliding window that admits `rate` tokens in any period, which is cut into so many parts. */
export function windowLimit(rate: number, periodMs: number, subWindows: number): Limit {
  const periodMicros = Math.round(periodMs * 1000);
  const subWindowMicros = Math.ceil(periodMicros / subWindows);
  return {
    algorithm: AlgorithmCode.SlidingWindow,
    capacity: rate,
    perToken: 1,
    perMicro: 0,
    perMs: 0,
    full: rate,
    maxDelayMicros: UNBOUNDED_MICROS,
    periodMicros,
    subWindowMicros,
    // Of a very short period fewer may be enough.
    subWindows: Math.ceil(periodMicros / subWindowMicros),
    ttlMs: Math.ceil(2 * periodMs),
  };
}

function microsOrUnbounded(ms: number): number {
  return ms < UNBOUNDED_MICROS / 1000 ? Math.round(ms * 1000) : UNBOUNDED_MICROS;
}

/** Units of a take that have not flowed in again since; none if the clock has stepped back meanwhile. */
export function notRefilled(limit: Limit, cost: number, elapsedMicros: number): number {
  if (elapsedMicros < 0) return 0;
  return Math.max(0, cost * limit.perToken - elapsedMicros * limit.perMicro);
}

/** One part in `nodes` of a bucket's rate and burst; never less than `leastBurst` tokens deep. */
export function nodeShareOf(limit: Limit, nodes: number, leastBurst: number): Limit {
  if (nodes <= 1) return limit;
  const capacity = Math.max(leastBurst, Math.floor(limit.capacity / nodes));
  if (limit.algorithm === AlgorithmCode.SlidingWindow)
    return { ...limit, capacity, full: capacity };
  const perToken = limit.perToken * nodes;
  return { ...limit, capacity, perToken, full: capacity * perToken };
}

/** The same part of another whole: `of(from)` is `to`, and what lies between is rounded down. */
export class Ratio {
  private readonly numerator: number;
  private readonly denominator: number;

  constructor(
    private readonly from: number,
    private readonly to: number,
  ) {
    const { numerator, denominator } = reduce(to, from);
    this.numerator = numerator;
    this.denominator = denominator;
  }

  /**
   * Exact where the product is; else one below what the division says, which may itself have been
   * rounded up. A limit that is changed back and forth must not gain a unit each time.
   */
  of(amount: number): number {
    if (amount === this.from) return this.to;
    const product = amount * this.numerator;
    if (Math.abs(product) <= LARGEST_EXACT) return Math.floor(product / this.denominator);
    return Math.floor((amount / this.denominator) * this.numerator) - 1;
  }
}

/** Another limit for the same buckets, which count in the same way. */
export class LimitChange {
  readonly units: Ratio;
  readonly tokens: Ratio;

  constructor(
    readonly from: Limit,
    readonly to: Limit,
  ) {
    this.units = new Ratio(from.full, to.full);
    this.tokens = new Ratio(from.capacity, to.capacity);
  }

  /** The level of such a bucket under the other limit; a debt is at most one bucket. */
  levelOf(level: number): number {
    const part = this.units.of(level);
    return Math.max(level < 0 ? -this.to.full : 0, part);
  }
}

export function isSameLimit(a: Limit, b: Limit): boolean {
  return a === b || FIGURES.every((figure) => a[figure] === b[figure]);
}

const FIGURES: readonly (keyof Limit)[] = [
  'algorithm',
  'capacity',
  'perToken',
  'perMicro',
  'full',
  'maxDelayMicros',
  'periodMicros',
  'subWindowMicros',
  'ttlMs',
];
