/** Whole numbers beyond this are no longer exact in a double. */
export const LARGEST_EXACT = Number.MAX_SAFE_INTEGER;

export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/**
 * `amount / per` in whole numbers, with a denominator of at most `largestDenominator` (or, for a
 * quotient that is smaller still, with 1 above it).
 *
 * Exact where that fits; else the best approximation, whose relative error is far below what a
 * double can tell apart in practice (continued fractions err by less than 1 / denominator²).
 */
export function toFraction(amount: number, per: number, largestDenominator: number): Fraction {
  const scale = decimalScale(amount);
  if (scale !== undefined) {
    const exact = reduce(Math.round(amount * scale), per * scale);
    if (exact.denominator <= largestDenominator) return exact;
  }
  const near = approximate(amount / per, largestDenominator);
  return near.numerator > 0 ? near : { numerator: 1, denominator: Math.round(per / amount) };
}

/** The power of ten, up to a million, that makes `value` whole. */
function decimalScale(value: number): number | undefined {
  for (let scale = 1; scale <= 1e6; scale *= 10) {
    if (Math.round(value * scale) / scale === value) return scale;
  }
  return undefined;
}

/** The same quotient in the smallest whole numbers. */
export function reduce(numerator: number, denominator: number): Fraction {
  const divisor = greatestCommonDivisor(numerator, denominator);
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

function greatestCommonDivisor(a: number, b: number): number {
  while (b > 0) [a, b] = [b, a % b];
  return a;
}

function approximate(value: number, largestDenominator: number): Fraction {
  let [numerator, previousNumerator] = [1, 0];
  let [denominator, previousDenominator] = [0, 1];
  let rest = value;
  for (;;) {
    const whole = Math.floor(rest);
    const nextDenominator = whole * denominator + previousDenominator;
    if (nextDenominator > largestDenominator) break;
    [numerator, previousNumerator] = [whole * numerator + previousNumerator, numerator];
    [denominator, previousDenominator] = [nextDenominator, denominator];
    if (rest - whole < Number.EPSILON * value) break;
    rest = 1 / (rest - whole);
  }
  return { numerator, denominator };
}
