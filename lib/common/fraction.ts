/** Whole numbers beyond this are no longer exact in a double. */
export const LARGEST_EXACT = Number.MAX_SAFE_INTEGER;

export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/**
 * `amount / per` in whole numbers, with a denominator of at most `largestDenominator`.
 *
 * Exact where that fits; else the best approximation, whose relative error is far below what a
 * double can tell apart in practice (continued fractions err by less than 1 / denominator²).
 */
export function toFraction(amount: number, per: number, largestDenominator: number): Fraction {
  const scale = decimalScale(amount);
  const exact = reduce(Math.round(amount * scale), per * scale);
  if (exact.denominator <= largestDenominator) return exact;
  const near = approximate(amount / per, largestDenominator);
  return near.numerator > 0 ? near : { numerator: 1, denominator: Math.round(per / amount) };
}

/** The power of ten that makes `value` whole, or a million. */
function decimalScale(value: number): number {
  let scale = 1;
  while (scale < 1e6 && Math.round(value * scale) / scale !== value) scale *= 10;
  return scale;
}

function reduce(numerator: number, denominator: number): Fraction {
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
