import fc from 'fast-check';
import { LogLinear } from '../../lib/common/histogram.js';

const LONGEST = 2 ** 26;

const micros = fc.oneof(
  fc.integer({ min: 0, max: 20 }),
  fc.double({ min: 0, max: LONGEST, noNaN: true }),
  fc.integer({ min: 3, max: 25 }).map((bits) => 2 ** bits),
);

function recorded(values: readonly number[]): LogLinear {
  const times = new LogLinear();
  for (const value of values) times.record(value);
  return times;
}

describe('LogLinear', () => {
  it('finds quantiles to an eighth, and never below the time itself', () => {
    fc.assert(
      fc.property(
        fc.array(micros, { minLength: 1 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (values, part) => {
          const sorted = values.toSorted((a, b) => a - b);
          const exact = sorted[Math.max(0, Math.ceil(part * values.length) - 1)]!;
          const found = recorded(values).quantile(part);
          expect(found).toBeGreaterThanOrEqual(exact);
          expect(found).toBeLessThanOrEqual(Math.max(1, Math.ceil(exact)) * 1.125);
        },
      ),
    );
  });

  it('counts exactly up to each power of two', () => {
    fc.assert(
      fc.property(fc.array(micros), fc.integer({ min: 0, max: 26 }), (values, bits) => {
        const atMost = values.filter((value) => value <= 2 ** bits).length;
        expect(recorded(values).countAtMost(2 ** bits)).toBe(atMost);
      }),
    );
  });

  it('is the same whether two are merged or all is recorded in one, in any order', () => {
    fc.assert(
      fc.property(fc.array(micros), fc.array(micros), (one, other) => {
        const merged = recorded(one);
        merged.merge(recorded(other));
        const all = recorded([...other, ...one]);
        expect(merged.cells).toEqual(all.cells);
        expect(merged.count).toBe(one.length + other.length);
        expect(merged.sumMicros).toBeCloseTo(all.sumMicros, 3);
      }),
    );
  });

  it('gives what came since the last look, also after it was counted anew', () => {
    const [now, before, more] = [recorded([5, 700]), new LogLinear(), new LogLinear()];
    more.takeDifference(now, before);
    expect(more.count).toBe(2);
    now.record(700);
    more.takeDifference(now, before);
    expect([more.count, more.sumMicros]).toEqual([1, 700]);
    more.takeDifference(recorded([9]), before);
    expect([more.count, more.sumMicros]).toEqual([1, 9]);
  });

  it('weighs a time that stands for several', () => {
    const times = new LogLinear();
    times.record(1000, 8);
    expect([times.count, times.sumMicros]).toEqual([8, 8000]);
  });

  it('counts a time beyond the longest as the longest, and its sum in full', () => {
    const times = recorded([LONGEST * 10]);
    expect([times.quantile(1), times.sumMicros]).toEqual([LONGEST, LONGEST * 10]);
    expect(times.countAtMost(Infinity)).toBe(1);
  });

  it.each([NaN, -1])('takes no notice of %p', (value) => {
    expect(recorded([value]).count).toBe(0);
  });

  it('stays full where a cell would begin anew', () => {
    const times = new LogLinear();
    times.record(3, 2 ** 32 - 1);
    times.record(3);
    times.merge(recorded([3]));
    expect(times.count).toBe(2 ** 32 - 1);
  });

  it('has no quantile where nothing was recorded', () => {
    expect(new LogLinear().quantile(0.5)).toBeNaN();
  });
});
