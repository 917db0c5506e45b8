import fc from 'fast-check';
import { deepestBurst, tokensWithin, usualRate, type Admission } from './admissions.js';

const PER_SECOND = 1000;

function admission(from: number, to = from, cost = 1): Admission {
  return { from, to, cost, app: 'shop', source: 'local' };
}

/** Every span that begins with one request and ends with another. */
function deepestByHand(all: readonly Admission[]): number {
  const excesses = all.flatMap(({ from }) =>
    all
      .filter(({ to }) => to >= from)
      .map(({ to }) => tokensWithin(all, from, to) - ((to - from) * PER_SECOND) / 1_000_000),
  );
  return Math.max(0, ...excesses);
}

describe('the usual rate', () => {
  it('is that of most of the time, whatever happened in between', () => {
    const steady = Array.from({ length: 700 }, (_, i) => admission(i * 1000 + 1));
    const stalled = steady.filter(({ from }) => from < 200_000 || from > 300_000);
    expect(usualRate(stalled, 0, 700_000)).toBeCloseTo(PER_SECOND);
  });
});

describe('the deepest burst', () => {
  it('is all of it if all came at once', () => {
    expect(deepestBurst([admission(5), admission(5), admission(5, 5, 3)], PER_SECOND)).toBe(5);
  });

  it('is one request if they came as slowly as the rate', () => {
    const steady = Array.from({ length: 100 }, (_, i) => admission(i * 1000));
    expect(deepestBurst(steady, PER_SECOND)).toBeCloseTo(1);
  });

  it('leaves out what may have been admitted before the span or after it', () => {
    const stopped = [admission(0, 900_000), admission(890_000, 900_000), admission(900_000)];
    expect(deepestBurst(stopped, PER_SECOND)).toBe(1);
  });

  it('is that of the worst of all spans', () => {
    const anyAdmission = fc
      .record({ from: fc.nat(20_000), lasts: fc.nat(5000), cost: fc.integer({ min: 1, max: 5 }) })
      .map(({ from, lasts, cost }) => admission(from, from + lasts, cost));
    fc.assert(
      fc.property(fc.array(anyAdmission, { maxLength: 30 }), (all) => {
        expect(deepestBurst(all, PER_SECOND)).toBeCloseTo(deepestByHand(all), 6);
      }),
    );
  });
});
