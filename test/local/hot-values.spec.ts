import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { DEFAULT_WIDTH, HotValues, LEAST_WIDTH } from '../../lib/local/hot-values.js';

const PERIOD = 1_000_000;
const SEED = Uint32Array.of(1, 2);

const hotValues = (width = DEFAULT_WIDTH) => new HotValues(width, PERIOD, 0, SEED);

/** A source of numbers from 0 to 1 that is the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  const { imul } = Math;
  return () => {
    state = (imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Ranks of values by Zipf's law with exponent 1: rank r comes 1/r as often as the first. */
function zipf(values: number, random: () => number): () => number {
  const { exp, floor, log } = Math;
  const scale = log(values + 1);
  return () => floor(exp(random() * scale)) - 1;
}

describe('hot values', () => {
  it('never count less than a value had in the last period, whatever the stream', () => {
    const request = fc.record({
      value: fc.integer({ min: 0, max: 3000 }),
      cost: fc.integer({ min: 1, max: 40 }),
      passed: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: PERIOD / 2 })),
    });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 400 }), (stream) => {
        const hot = hotValues(LEAST_WIDTH);
        const had: { value: number; cost: number; at: number }[] = [];
        let now = 0;
        for (const { value, cost, passed } of stream) {
          now += passed;
          had.push({ value, cost, at: now });
          const truth = had
            .filter((one) => one.value === value && one.at > now - PERIOD)
            .reduce((sum, one) => sum + one.cost, 0);
          expect(hot.add(`v${value}`, cost, now)).toBeGreaterThanOrEqual(truth);
          expect(hot.estimate(`v${value}`, now)).toBeGreaterThanOrEqual(truth);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('of a value that is alone say exactly what it had in this period and the one before', () => {
    const hot = hotValues();
    expect(hot.add('a', 3, 0)).toBe(3);
    expect(hot.add('a', 4, PERIOD - 1)).toBe(7);
    expect(hot.add('a', 1, PERIOD)).toBe(8);
    expect(hot.add('a', 1, 2 * PERIOD)).toBe(2);
    expect(hot.add('a', 1, 4 * PERIOD)).toBe(1);
    expect(hot.estimate('b', 4 * PERIOD)).toBe(0);
  });

  it('hold what is more than a cell can count for full, and never begin anew', () => {
    const hot = hotValues();
    for (let i = 0; i < 5; i++) hot.add('a', 60_000, 0);
    expect(hot.estimate('a', 0)).toBe(65_535);
    expect(hot.top(1, 0)).toEqual([{ key: 'a', perPeriod: 300_000 }]);
  });

  it('find the ten that are most in demand under a flood of a million others, in one MiB', () => {
    const random = numbers(7);
    const rank = zipf(100_000, random);
    const truth = new Map<number, number>();
    const hot = hotValues();
    const threshold = 1000;
    let unseen = 0;
    const before = heapAndBuffers();
    for (let i = 0; i < 1_000_000; i++) {
      hot.add(`one-of-many-${i}`, 1, 0);
      if (i % 4 !== 0) continue;
      const value = rank();
      const had = (truth.get(value) ?? 0) + 1;
      truth.set(value, had);
      const isSeen = hot.add(`v${value}`, 1, 0) > threshold;
      if (had > 2 * threshold && !isSeen) unseen++;
    }
    const ranked = [...truth].sort(([, one], [, other]) => other - one);
    truth.clear();
    expect(hot.top(10, 0).map(({ key }) => key)).toEqual(
      expect.arrayContaining(ranked.slice(0, 10).map(([value]) => `v${value}`)),
    );
    expect(unseen).toBe(0);
    expect(hot.top(1000, 0)).toHaveLength(64);
    ranked.length = 0;
    expect(heapAndBuffers() - before).toBeLessThan(2 ** 20);
  });

  it('forget the names of values that nobody asked for in two periods', () => {
    const hot = hotValues();
    hot.add('a', 5, 0);
    hot.add('b', 2, 0);
    expect(hot.top(10, PERIOD / 2)).toEqual([
      { key: 'a', perPeriod: 5 },
      { key: 'b', perPeriod: 2 },
    ]);
    hot.add('b', 1, PERIOD);
    expect(hot.top(10, PERIOD * 1.5)).toEqual([
      { key: 'a', perPeriod: 3 },
      { key: 'b', perPeriod: 2 },
    ]);
    expect(hot.top(10, 2 * PERIOD)).toEqual([{ key: 'b', perPeriod: 1 }]);
    expect(hot.top(10, 9 * PERIOD)).toEqual([]);
  });
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapAndBuffers(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
