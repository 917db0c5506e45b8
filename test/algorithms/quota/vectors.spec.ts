import { compileQuota } from '../../../lib/algorithms/quota/quota-limits.js';
import { Till } from '../../support/quota-calls.js';
import { figures, isValid, withoutCluster } from '../../support/quota-histories.js';

/** The app of the source: 20,000 guaranteed, 80,000 burst for 60 seconds. */
const VIDEO = { guaranteed: 20_000, burst: 80_000 };
const ALONE = withoutCluster(figures([VIDEO]));
const SECOND = 1000;

/** The levels of the buckets of app 0, in tokens, as of the last call. */
function left(till: Till): { stock: number; credit: number } {
  const { stock, credit } = till.ledger.peek()!.apps[0]!;
  return { stock: stock / 1e6, credit: credit / 1e6 };
}

describe('test vectors of the source, in the terms of the design', () => {
  it('V-A6: with a reserve of 0.1 the last tenth is lent to priority 0 only', () => {
    const had = [0, 1].map((priority) => {
      const app = { guaranteed: 1000, burst: 1_000_000, elastic: true, priority };
      const till = new Till(figures([app]));
      return till.need(0, 1_000_000);
    });
    expect(had).toEqual([200_000, 180_000]);
  });

  it('V-A7: a lease of 100,000 whose owner died is destroyed, and its capacity is there again', () => {
    const app = { guaranteed: 1000, burst: 1_000_000, elastic: true };
    const till = new Till(figures([app]));
    expect(till.call(0, 'dies', { want: 100_000 }).apps[0]!.granted).toBe(100_000);
    expect(till.need(999, 1_000_000)).toBe(100_000);
    expect(till.need(1000, 0) ?? 0).toBe(0);
    expect(till.ledger.peek()!.cluster.outstanding).toBe(0);
    expect(till.need(1300, 1_000_000)).toBe(200_000);
  });

  it('V-A15: demand of 0.9 of the capacity exactly is no overload', () => {
    const till = new Till(figures([VIDEO], { capacity: 100_000 }));
    till.ask(0, { demand: 90_000 });
    expect(till.call(100, 'a', { demand: 90_000 }).overloaded).toBe(false);
    expect(till.call(200, 'a', { demand: 90_001 }).overloaded).toBe(true);
  });

  it('V-A16: the guarantees of A, B and C fit into the cluster, and their buckets into its depth', () => {
    const given = figures([{ guaranteed: 10_000 }, { guaranteed: 20_000 }, { guaranteed: 5000 }]);
    expect(isValid(given)).toBe(true);
    const { apps, depth, leaseBudget } = compileQuota(given);
    const stock = apps.reduce((sum, { stockDepth }) => sum + stockDepth, 0);
    expect(stock).toBe(3500e6);
    expect(stock + (leaseBudget / 2) * 1e6).toBeLessThanOrEqual(depth);
  });

  it('V-A17: 20,000 tokens, a request of 2 at the same instant: 19,998', () => {
    expect(new Till(ALONE).ask(0, { count: 2 })).toMatchObject({ needs: [2], remaining: 19_998 });
  });

  it('V-A18, V-A20: idle for long, 20,000 and a credit of 60,000: 80,000 at one instant', () => {
    const till = new Till(ALONE);
    till.need(0, 1);
    expect(left(till)).toEqual({ stock: 19_999, credit: 60_000 });
    for (const seconds of [1, 2, 3, 4]) {
      till.ask(seconds * SECOND, {});
      expect(left(till)).toEqual({ stock: 20_000, credit: 60_000 });
    }
    expect(till.need(3_600_000, 200_000)).toBe(80_000);
    expect(till.need(3_600_000, 1)).toBe(0);
  });

  it('V-A19: from nothing, the guarantee is full after a second and stays so', () => {
    const till = new Till(ALONE);
    till.need(0, 80_000);
    const stocks = [0.5, 1, 4, 8].map((seconds) => {
      till.ask(seconds * SECOND, {});
      return left(till).stock;
    });
    expect(stocks).toEqual([10_000, 20_000, 20_000, 20_000]);
  });

  it('V-A21: a request after a fraction of a token, then a batch of 1,000', () => {
    const till = new Till(ALONE);
    till.need(0, 80_000);
    expect(till.need(123.457, 1)).toBe(1);
    expect(till.want(123.457, 1000)).toBe(1000);
  });

  it('V-A22: batches alone are refilled: 1,000 and 1,000 and 1,000', () => {
    const till = new Till(ALONE);
    till.need(0, 78_500);
    const granted = [0, 60_000, 160_000].map((at) => till.want(at, 1000, { used: 0 }));
    expect(granted).toEqual([1000, 1000, 1000]);
  });

  it('V-A23, V-A24: a new app has its batch at once, and says what is left', () => {
    expect(new Till(ALONE).want(0, 1000)).toBe(1000);
    const till = new Till(ALONE);
    till.want(0, 4200);
    expect(till.ask(0, { want: 800 })).toMatchObject({ granted: 800, remaining: 15_000 });
  });

  it('V-A25: callers whose instants are a second apart change nothing and see nothing negative', () => {
    const till = new Till(ALONE);
    till.need(5000, 80_000);
    expect([4000, 5000, 4000].map((at) => till.need(at, 10))).toEqual([0, 0, 0]);
    expect(till.need(5001, 100)).toBe(20);
    expect(till.need(4001, 100)).toBe(0);
    expect(till.need(5002, 100)).toBe(20);
  });

  it('V-A26: a credit of 60,000 is full again 60 s after it was first drawn on', () => {
    const till = new Till(ALONE);
    // At each instant all of the guarantee first, so that the rest can only come from the credit.
    const borrow = (second: number, tokens: number): number => {
      till.need(second * SECOND, 20_000);
      return till.need(second * SECOND, tokens);
    };
    const had = [
      borrow(1010, 50_000),
      borrow(1020, 50_000),
      borrow(1069, 50_000),
      borrow(1070, 50_000),
      borrow(1071, 50_000),
      borrow(1072, 1),
      borrow(1130, 50_000),
    ];
    expect(had).toEqual([50_000, 10_000, 0, 50_000, 10_000, 0, 50_000]);
    expect(left(till).credit).toBe(10_000);
  });

  it('V-A27: the credit of 80,000 over 20,000 is 60,000; of 100,000 over 25,000, 75,000', () => {
    const given = figures([VIDEO, { guaranteed: 25_000, burst: 100_000 }]);
    const credits = compileQuota(given).apps.map(({ creditDepth }) => creditDepth / 1e6);
    expect(credits).toEqual([60_000, 75_000]);
  });

  it('V-A28: what costs more than the app can ever have never passes, and takes nothing', () => {
    const till = new Till(ALONE);
    expect(till.need(0, 1, { cost: 80_001 })).toBe(0);
    expect(till.need(3_600_000, 1, { cost: 80_001 })).toBe(0);
    expect(left(till)).toEqual({ stock: 20_000, credit: 60_000 });
  });
});
