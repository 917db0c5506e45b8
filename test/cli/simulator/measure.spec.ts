import { IdealBucket, IdealLedger } from '../../../lib/cli/simulator/measure/ideal.js';
import {
  deficit,
  inversions,
  latenessOfGuarantee,
} from '../../../lib/cli/simulator/measure/guarantee.js';
import {
  countBetween,
  countBySpan,
  longestGap,
  mostBeyondRate,
  mostInAnySpan,
} from '../../../lib/cli/simulator/measure/sliding-span.js';
import { oneApp } from '../../../lib/cli/simulator/scenarios/ground.js';

/** So many in each second from 0 on, evenly. */
const evenly = (perSecond: number, seconds: number): number[] =>
  Array.from({ length: perSecond * seconds }, (_, i) => i / perSecond);

describe('sliding spans', () => {
  it('find the most in any span, wherever it begins, both ends included', () => {
    expect(mostInAnySpan([0, 0.9, 1, 1.1, 1.9, 5], 1)).toBe(4);
    expect(mostInAnySpan([0, 1, 2], 1)).toBe(2);
    expect(mostInAnySpan([3, 3, 3], 0.1)).toBe(3);
    expect(mostInAnySpan([], 1)).toBe(0);
  });

  it('find the bucket that would have admitted all of it', () => {
    expect(mostBeyondRate(evenly(10, 5), 1, 10)).toBeCloseTo(1);
    expect(mostBeyondRate([...evenly(10, 5), 5, 5, 5], 1, 10)).toBeCloseTo(3);
    expect(mostBeyondRate([0, 0, 1, 1], 5, 10)).toBe(10);
    expect(mostBeyondRate([], 1, 10)).toBe(0);
  });

  it('agree with each other: a bucket as deep as what is beyond bounds every span', () => {
    const at = [0, 0.01, 0.3, 0.31, 0.32, 0.8, 1.5, 1.51, 1.52, 1.53, 3];
    const depth = mostBeyondRate(at, 1, 2);
    for (const span of [0.01, 0.1, 0.5, 1, 2, 3]) {
      expect(mostInAnySpan(at, span)).toBeLessThanOrEqual(2 * span + depth);
    }
    const bucket = new IdealBucket(2, depth + 1e-9);
    expect(at.every((second) => bucket.take(1, second))).toBe(true);
    const shallower = new IdealBucket(2, depth - 0.1);
    expect(at.every((second) => shallower.take(1, second))).toBe(false);
  });

  it('count by span and between, and find the longest silence', () => {
    expect(countBySpan([0, 0.05, 0.1, 0.29, 0.31], 0.1, 0.3)).toEqual([2, 1, 1]);
    expect(countBetween([1, 2, 3, 4], 2, 4)).toBe(2);
    expect(longestGap([0.1, 0.2, 0.9], 1)).toBeCloseTo(0.7);
    expect(longestGap([0.1], 2)).toBeCloseTo(1.9);
    expect(longestGap([], 2)).toBe(2);
  });
});

describe('the ideal', () => {
  it('as a bucket is full at first, fills at its rate, and no further than its depth', () => {
    const bucket = new IdealBucket(10, 3);
    const taken = (second: number): number => {
      let count = 0;
      while (bucket.take(1, second)) count++;
      return count;
    };
    expect([0, 0.1, 0.25, 100].map(taken)).toEqual([3, 1, 1, 3]);
  });

  it('as a bucket takes all of a cost or nothing', () => {
    const bucket = new IdealBucket(1, 5);
    expect([bucket.take(4, 0), bucket.take(2, 0), bucket.take(1, 0)]).toEqual([true, false, true]);
  });

  it('as a ledger keeps to the same cap, and knows ceilings', () => {
    const { figures } = oneApp(1000);
    const ledger = new IdealLedger(figures);
    const admitted = evenly(10_000, 1).filter((second) => ledger.take(1, second, 0));
    expect(mostBeyondRate(admitted, 1, 1000)).toBeLessThanOrEqual(200 + 1e-6);
    expect(admitted.length).toBeGreaterThan(1190);
    const apps = [{ ...figures.apps[0]!, burst: 500 }];
    const low = new IdealLedger({ ...figures, apps });
    const fewer = evenly(10_000, 10).filter((second) => low.take(1, second, 0));
    expect(fewer.length).toBeLessThanOrEqual(500 * 11);
  });
});

describe('guarantees', () => {
  it('have no deficit where all was admitted that was sure and asked for', () => {
    expect(deficit(evenly(50, 4), evenly(20, 4), 20, 4)).toBe(0);
    expect(deficit(evenly(5, 4), evenly(5, 4), 20, 4)).toBe(0);
    expect(deficit([], [], 20, 4)).toBe(0);
  });

  it('have a deficit of what was missing in each second; more in another is no excuse', () => {
    const admitted = [...evenly(10, 1), ...evenly(90, 1).map((at) => at + 1)];
    expect(deficit(evenly(100, 2), admitted, 20, 2)).toBeCloseTo(0.25);
  });

  it('are late by what the slowest request of the first second waited beyond its due', () => {
    const offered = evenly(100, 2);
    expect(latenessOfGuarantee(offered, evenly(20, 2), 20)).toBe(0);
    const late = evenly(20, 2).map((at) => at + 0.3);
    expect(latenessOfGuarantee(offered, late, 20)).toBeCloseTo(0.25);
    expect(latenessOfGuarantee(offered, [], 20)).toBe(Infinity);
  });

  it('see an inversion only where a higher priority is short while a lower one has more', () => {
    const high = { priority: 0, share: 80 };
    const low = { priority: 1, share: 20 };
    const of = (highRate: number, lowRate: number): number =>
      inversions(
        [
          { ...high, at: evenly(highRate, 3) },
          { ...low, at: evenly(lowRate, 3) },
        ],
        1,
        3,
      );
    expect(of(80, 20)).toBe(0);
    expect(of(60, 40)).toBe(2);
    expect(of(60, 20)).toBe(0);
    expect(of(90, 10)).toBe(0);
    expect(of(80, 40)).toBe(0);
  });
});
