import { compileQuota } from '../../../lib/algorithms/quota/quota-limits.js';
import { Till, askFor } from '../../support/quota-calls.js';
import { START_MICROS } from '../../support/quota-fleet.js';
import { figures, withoutCluster } from '../../support/quota-histories.js';

const IDLE_CAPACITY = { guaranteed: 1000, burst: 1_000_000, elastic: true };
/** Four apps of priorities 0 to 3 that all want more than there is. */
const FOUR = figures(
  [0, 1, 2, 3].map((priority) => ({
    guaranteed: 1000,
    burst: 10_000,
    burstDurationMs: 1000,
    priority,
  })),
  { capacity: 10_000 },
);
const ALONE = withoutCluster(figures([{ guaranteed: 20_000, burst: 80_000 }]));

/** All four apps ask for all they can get, at a steady pace; what each got in these seconds. */
function compete(till: Till, fromMs: number, toMs: number, demand = 5000): number[] {
  const got = [0, 0, 0, 0];
  for (let at = fromMs; at < toMs; at += 50) {
    const asked = got.map((_, app) => ({ app, demand, count: demand / 20 }));
    const { apps } = till.call(at, 'a', ...asked);
    for (const { app, needs } of apps) got[app]! += needs[0] ?? 0;
  }
  return got;
}

function shareRates(till: Till): number[] {
  return till.ledger.peek()!.apps.map(({ shareRate }) => shareRate);
}

describe('faults of the source that the ledger does not have: the cluster', () => {
  it('BUG-A02: what was granted once is not gone for ever', () => {
    const till = new Till(figures([IDLE_CAPACITY]));
    let granted = 0;
    for (let at = 0; at <= 10_000; at += 50) granted += till.need(at, 1_000_000);
    expect(granted).toBe(200_000 + 10_000_000);
  });

  it('BUG-A03: with more leased than there is room for, grants are 0 and not negative', () => {
    const till = new Till(figures([IDLE_CAPACITY], { capacity: 100 }));
    till.call(0, 'b', { want: 1000 });
    till.need(0, 1000);
    expect(till.ask(0, { want: 10, count: 10 })).toMatchObject({ granted: 0, needs: [0] });
  });

  it('BUG-A04, BUG-A18: odd capacities and fractions of tokens give whole grants', () => {
    const till = new Till(figures([IDLE_CAPACITY], { capacity: 999_999 }));
    for (let at = 0; at < 50; at += 0.777) {
      const { granted, needs } = till.ask(at, { want: 3333, count: 777 });
      expect([granted, needs[0]].every(Number.isInteger)).toBe(true);
    }
  });

  it('BUG-A06: the higher the priority, the more is left to it', () => {
    const [first, second, third, last] = compete(new Till(FOUR), 0, 10_000);
    expect(first).toBeGreaterThan(second!);
    expect(second).toBeGreaterThan(third!);
    expect(third).toBeGreaterThan(last!);
  });

  it('BUG-A07: demand far above the capacity makes no share negative', () => {
    const till = new Till(FOUR);
    compete(till, 0, 1000, 1_000_000);
    expect(Math.min(...shareRates(till))).toBeGreaterThan(0);
  });

  it('BUG-A08: the same demand gives the same shares, tick after tick, and they end with it', () => {
    const till = new Till(FOUR);
    compete(till, 0, 200);
    const first = shareRates(till);
    compete(till, 200, 1200);
    expect(shareRates(till)).toEqual(first);
    compete(till, 1200, 1400, 100);
    expect(till.ledger.peek()!.cluster.overloaded).toBe(false);
  });

  it('BUG-A09: overload can be reached: it is offered demand, not what was allocated', () => {
    const till = new Till(FOUR);
    compete(till, 0, 200, 2300);
    expect(till.ledger.peek()!.cluster.overloaded).toBe(true);
  });

  it('BUG-A13: no guarantee is cut, however great the overload', () => {
    const got = compete(new Till(FOUR), 0, 10_000, 1_000_000);
    expect(Math.min(...got)).toBeGreaterThanOrEqual(10_000);
  });

  it('BUG-A14: guaranteed, granted, leased and used are figures of their own', () => {
    const till = new Till(FOUR);
    till.call(0, 'a', { app: 0, want: 30, count: 5 }, { app: 1, want: 20 });
    till.call(1, 'a', { app: 0, used: 10, returned: 4 });
    const [first, second] = till.ledger.peek()!.apps;
    expect(first).toMatchObject({ granted: 31, outstanding: 16e6, used: 15 });
    expect(second).toMatchObject({ granted: 20, outstanding: 20e6, used: 0 });
    expect(till.ledger.peek()!.cluster.outstanding).toBe(36e6);
  });

  it('BUG-A15: one app cannot take everything: its ceiling, then the guarantees of the others', () => {
    const ceiling = new Till(figures([{ guaranteed: 100, burst: 500, elastic: true }]));
    expect(ceiling.need(0, 1_000_000)).toBe(500);
    const others = new Till(figures([IDLE_CAPACITY, { guaranteed: 500_000, burst: 500_000 }]));
    expect(others.need(0, 1_000_000)).toBe(150_000);
    expect(others.need(0, 1_000_000, { app: 1 })).toBe(50_000);
  });

  it('BUG-A16: the burst ratio is the depth of the bucket', () => {
    const had = [1, 1.2, 1.5].map((burstRatio) =>
      new Till(figures([IDLE_CAPACITY], { burstRatio })).need(0, 1_000_000),
    );
    expect(had).toEqual([125_000, 200_000, 500_000]);
  });

  it('BUG-A17: apps draw on the capacity they share: together they never have more', () => {
    const till = new Till(figures([IDLE_CAPACITY, { ...IDLE_CAPACITY, priority: 1 }]));
    const first = till.need(0, 1_000_000, { app: 1 });
    expect(first + till.need(0, 1_000_000)).toBe(200_000);
  });
});

describe('faults of the source that the ledger does not have: the app', () => {
  it('BUG-A19, BUG-A20: a new app has tokens, and batches are refilled', () => {
    const till = new Till(ALONE);
    const batches = [0, 1, 2, 3].map((second) => {
      return till.want(second * 1000, 20_000, { used: second === 0 ? 0 : 20_000 });
    });
    expect(batches).toEqual([20_000, 20_000, 20_000, 20_000]);
  });

  it('BUG-A21: time that steps back takes no tokens away', () => {
    const till = new Till(ALONE);
    till.need(10_000, 1);
    expect(till.ask(8880, { count: 1 })).toMatchObject({ needs: [1], remaining: 19_998 });
  });

  it('BUG-A22: the burst counts once: 80,000 at an instant, not 140,000', () => {
    const till = new Till(ALONE);
    expect(till.need(60_000_000, 140_000)).toBe(80_000);
  });

  it('BUG-A23, BUG-A24: the burst is 60,000 tokens in each 60 seconds, window after window', () => {
    const till = new Till(ALONE);
    const beyond = [0, 1, 2].map((window) => {
      let granted = 0;
      for (let at = window * 60_000; at < (window + 1) * 60_000; at += 50) {
        granted += till.need(at, 100_000);
      }
      // The bucket was full at the very start; from then on it flows.
      return granted - 20_000 * 60 - (window === 0 ? 19_000 : 0);
    });
    expect(beyond).toEqual([60_000, 60_000, 60_000]);
  });

  it('BUG-A26: a request passes whole or not at all, and a window ends when it is over', () => {
    const till = new Till(
      withoutCluster(figures([{ guaranteed: 10, burst: 30 }], {}, { maxCost: 9 })),
    );
    expect(till.need(0, 4, { cost: 7 })).toBe(4);
    expect(till.need(0, 1, { cost: 7 })).toBe(0);
    expect(till.need(0, 2, { cost: 1 })).toBe(2);
    till.need(59_999.999, 100, { cost: 1 });
    expect(till.need(59_999.999, 20)).toBe(0);
    expect(till.need(60_000, 30)).toBe(20);
  });

  it('BUG-A26b: no cost leaves a bucket fuller than it was, or above its depth', () => {
    const till = new Till(ALONE);
    till.ask(0, { count: 1, cost: 1_000_000, returned: 1_000_000, used: 1_000_000 });
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ stock: 20_000e6, room: 80_000e6 });
  });

  it('BUG-A26d: idle nodes cannot hold all there is, and a request still finds the guarantee', () => {
    const till = new Till(figures([{ guaranteed: 5000, burst: 20_000 }], { capacity: 10_000 }));
    let held = 0;
    for (let node = 0; node < 20; node++) {
      held += till.call(0, `idle${node}`, { want: 1000 }).apps[0]!.granted;
    }
    expect(held).toBeLessThanOrEqual(1000);
    expect(till.need(0, 100)).toBe(100);
  });

  it('BUG-A34: a report takes nothing from the app a second time', () => {
    const till = new Till(ALONE);
    till.want(0, 1000);
    expect(till.ask(0, { used: 1000 }).remaining).toBe(19_000);
  });

  it('BUG-A39: what an idle node holds ends with its lease, and what it gives back is there', () => {
    const till = new Till(ALONE);
    till.call(0, 'idle', { want: 1000 });
    till.call(0, 'stops', { want: 1000 });
    till.leave(0, 'stops', { returned: 1000 });
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ stock: 19_000e6, outstanding: 1000e6 });
    till.ask(1000, {});
    expect(till.ledger.peek()!.apps[0]!.outstanding).toBe(0);
  });

  it('BUG-A44: what is asked for is what is to be added, and no more is granted', () => {
    const till = new Till(ALONE);
    expect(till.want(0, 200)).toBe(200);
    expect(till.want(0, 800)).toBe(800);
  });

  it('V-A46, BUG-A48: lower limits leave nothing above them, higher ones fill nothing up', () => {
    const till = new Till(ALONE);
    till.need(0, 10_000);
    const levels = (): number[] => {
      const { stock, room, credit } = till.ledger.peek()!.apps[0]!;
      return [stock, room, credit].map((units) => units / 1e6);
    };
    expect(levels()).toEqual([10_000, 70_000, 60_000]);
    const half = withoutCluster(figures([{ guaranteed: 10_000, burst: 40_000 }]));
    till.ledger.change(START_MICROS, compileQuota(half));
    expect(levels()).toEqual([5000, 35_000, 30_000]);
    till.ledger.change(START_MICROS, compileQuota(ALONE));
    expect(levels()).toEqual([10_000, 70_000, 60_000]);
  });

  it('the same call twice is one call, also when a later one has been settled', () => {
    const till = new Till(ALONE);
    const first = till.call(0, 'a', { want: 100 });
    const again = { node: 'a', incarnation: '1', seq: 1, seenEpoch: 0, seenSequence: 0 };
    const repeat = { ...again, leaving: false, apps: [askFor({ want: 100 })] };
    expect(till.ledger.settle(START_MICROS + 5000, repeat)).toEqual(first);
    till.call(10, 'a', { want: 50 });
    till.ledger.settle(START_MICROS + 20_000, repeat);
    expect(till.ledger.peek()!.apps[0]!.outstanding).toBe(150e6);
  });
});
