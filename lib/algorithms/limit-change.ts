import { LARGEST_EXACT, reduce } from '../common/fraction.js';
import { type Limit } from './limit.js';

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

  /** What a bucket of such a level holds under the other limit; what it owes is at most one bucket. */
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
