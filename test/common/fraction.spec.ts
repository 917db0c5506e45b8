import fc from 'fast-check';
import { LARGEST_EXACT, toFraction } from '../../lib/common/fraction.js';

describe('a fraction', () => {
  it.each([
    [10, 1_000_000, 1, 100_000],
    [1, 1_000_000, 1, 1_000_000],
    [2_000_000, 1_000_000, 2, 1],
    [0.25, 1_000_000, 1, 4_000_000],
    [1.1, 1_000_000, 11, 10_000_000],
    [100, 60_000_000, 1, 600_000],
  ])('%d per %d is %d / %d', (amount, per, numerator, denominator) => {
    expect(toFraction(amount, per, 1e12)).toEqual({ numerator, denominator });
  });

  it.each([
    [1 / 3, 1_000_000],
    [Math.PI, 1_000_000],
    [1e-7, 1_000_000],
    [1.23456789e-6, 1_000_000],
  ])('%d per %d, which six decimals cannot say, is still right to nine digits', (amount, per) => {
    const { numerator, denominator } = toFraction(amount, per, LARGEST_EXACT);
    expect(numerator / denominator / (amount / per)).toBeCloseTo(1, 9);
  });

  it('keeps to the largest denominator when the exact one would be larger', () => {
    const { numerator, denominator } = toFraction(333_333, 1_000_000, 1000);
    expect([numerator, denominator]).toEqual([1, 3]);
  });

  const pers = fc.integer({ min: 1, max: 86_400_000_000 });
  const bounds = fc.integer({ min: 1e10, max: LARGEST_EXACT });

  it('property: whole amounts that fit are exact, and in lowest terms', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), pers, (amount, per) => {
        const { numerator, denominator } = toFraction(amount, per, LARGEST_EXACT);
        expect(BigInt(numerator) * BigInt(per)).toBe(BigInt(denominator) * BigInt(amount));
        expect(denominator).toBeLessThanOrEqual(per);
      }),
    );
  });

  it('property: any amount is whole numbers, bounded, and right to nine digits', () => {
    const amounts = fc.oneof(
      fc.integer({ min: 1, max: 1e12 }),
      fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
    );
    fc.assert(
      fc.property(amounts, pers, bounds, (amount, per, largest) => {
        fc.pre(amount / per > 1 / largest);
        const { numerator, denominator } = toFraction(amount, per, largest);
        expect(Number.isInteger(numerator) && numerator > 0).toBe(true);
        expect(Number.isInteger(denominator) && denominator > 0).toBe(true);
        expect(denominator).toBeLessThanOrEqual(largest);
        const error = Math.abs((numerator / denominator) * (per / amount) - 1);
        expect(error).toBeLessThanOrEqual(1e-9);
      }),
    );
  });
});
