import { compileQuota, QuotaLedger, type AppCall } from '../../lib/algorithms/quota/index.js';
import { checkQuota } from '../../lib/limiter/quota-options.js';
import { AppTank } from '../../lib/local/app-tank.js';
import { StockPlan } from '../../lib/local/stock-plan.js';

const NOW = 10_000_000;
const SETTINGS = {
  horizonMicros: 50_000,
  reserveTarget: 0,
  refillThreshold: 0.2,
  batchThreshold: 1000,
};

function tankOf(index: number, requests: number, cost = 1): AppTank {
  const tank = new AppTank(index, `app${index}`, 100, 1000, cost);
  for (let i = 0; i < requests; i++) tank.demand.add(cost, NOW + i);
  return tank;
}

describe('the cap of a node', () => {
  it('is shared by its apps, so that none of them has all and another one nothing', () => {
    const tanks = [tankOf(0, 40), tankOf(1, 20)];
    const plan = new StockPlan(SETTINGS, tanks);
    plan.leaseCap = 90;
    expect(tanks.map((tank) => plan.want(tank, NOW + 20_000))).toEqual([60, 30]);
  });

  it('is first for apps that have enough, and leaves a quarter to those that are short', () => {
    const tanks = [tankOf(0, 40), tankOf(1, 20)];
    tanks[0]!.lastShortage = 'cluster';
    const plan = new StockPlan(SETTINGS, tanks);
    plan.leaseCap = 120;
    const wants = tanks.map((tank) => plan.want(tank, NOW + 20_000));
    expect(wants).toEqual([45, 75]);
    plan.leaseCap = 40;
    expect(tanks.map((tank) => plan.want(tank, NOW + 20_000))).toEqual([10, 30]);
  });
});

describe('the stock of an app', () => {
  it('is whole requests', () => {
    const tank = tankOf(0, 5, 7);
    expect(new StockPlan(SETTINGS, [tank]).want(tank, NOW + 50_000) % 7).toBe(0);
  });

  it('is none where requests come now and then', () => {
    const tank = tankOf(0, 1);
    for (let i = 1; i <= 5; i++) tank.demand.add(1, NOW + i * 1_000_000);
    expect(tank.target(SETTINGS.horizonMicros, NOW + 5_000_000)).toBe(0);
  });

  it('follows demand that has gone elsewhere within a few slots', () => {
    const tank = tankOf(0, 400);
    const before = tank.target(SETTINGS.horizonMicros, NOW + 49_999);
    tank.demand.add(1, NOW + 60_000);
    expect(tank.target(SETTINGS.horizonMicros, NOW + 260_000)).toBeLessThan(before / 4);
  });
});

describe('the lowest priority', () => {
  it('is lent what a full bucket has, however much of it is leased', () => {
    const { figures } = checkQuota({
      cluster: { capacity: 10_000 },
      apps: {
        high: { guaranteed: 4000, burst: 8000, priority: 0 },
        low: { guaranteed: 500, burst: 5000, priority: 3 },
      },
    });
    const ledger = new QuotaLedger(compileQuota(figures));
    let seq = 0;
    const call = (seconds: number, app: Partial<AppCall> & { app: number }) =>
      ledger.settle(NOW + seconds * 1e6, {
        ...{ node: 'n', incarnation: '1', seq: ++seq, seenEpoch: 0, seenSequence: 0 },
        leaving: false,
        apps: [{ used: 0, returned: 0, demand: 0, needs: [], want: 0, ...app }],
      }).apps[0]!;
    expect(call(0, { app: 0, want: 1000 }).granted).toBe(1000);
    // Half of the burst is leased and the rest has filled up: 50 of its own, and more.
    expect(call(0.5, { app: 1, needs: [{ cost: 1, count: 300 }] }).needs).toEqual([300]);
  });
});
