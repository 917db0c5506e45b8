import fc from 'fast-check';
import { QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import { compileQuota } from '../../lib/algorithms/quota/quota-limits.js';
import { type AppCall } from '../../lib/algorithms/quota/quota-protocol.js';
import { checkQuota } from '../../lib/limiter/quota-options.js';
import { AppTokens } from '../../lib/local/app-tokens.js';
import { CallWriter } from '../../lib/local/lease-calls.js';
import { StockPlan } from '../../lib/local/stock-plan.js';

const NOW = 10_000_000;
const SETTINGS = {
  horizonMicros: 50_000,
  reserveTarget: 0,
  refillThreshold: 0.2,
  batchThreshold: 1000,
};

function appOf(index: number, requests: number, cost = 1): AppTokens {
  const fill = { fillMicros: 1_000_000, storeFillMicros: 1_000_000 };
  const settings = { guaranteed: 100, burst: 1000, maxCost: cost, ...fill };
  const app = new AppTokens(index, `app${index}`, settings);
  for (let i = 0; i < requests; i++) app.demand.add(cost, NOW + i);
  return app;
}

describe('the cap of a node', () => {
  const wantsOf = (apps: AppTokens[], cap: number): number[] => {
    const plan = new StockPlan(SETTINGS, apps);
    plan.capAt(cap);
    return apps.map((app) => plan.want(app, NOW + 20_000));
  };

  it('is shared by its apps, so that none of them has all and another one nothing', () => {
    expect(wantsOf([appOf(0, 40), appOf(1, 20)], 90)).toEqual([60, 30]);
  });

  it('goes by what is given where an app is short, however much it asks for', () => {
    const apps = [appOf(0, 4000), appOf(1, 20)];
    const reply = { app: 0, granted: 20, needs: [], shortage: 'cluster' as const };
    apps[0]!.write([], 0, 6000, false, NOW + 10_000);
    const others = { retryAfterMicros: 1000, remaining: 0, nodes: 1, share: 0 };
    apps[0]!.applyReply({ ...reply, ...others }, [], NOW, NOW + 11_000);
    apps[0]!.tokens = 0;
    // Weights of 30 for the 20 that it is given at a time, and of 75 for what the other one uses.
    expect(wantsOf(apps, 90)).toEqual([26, 64]);
  });

  it('is not filled with a request for each of many small apps', () => {
    const large = appOf(0, 40);
    const small = Array.from({ length: 20 }, (_, i) => {
      const app = appOf(i + 1, 1);
      for (let slot = 1; slot <= 4; slot++) app.demand.add(1, NOW + slot * 60_000);
      return app;
    });
    for (let slot = 1; slot <= 4; slot++) {
      for (let i = 0; i < 40; i++) large.demand.add(1, NOW + slot * 50_000 + i);
    }
    const plan = new StockPlan(SETTINGS, [large, ...small]);
    plan.capAt(40);
    const [first, ...rest] = [large, ...small].map((app) => plan.want(app, NOW + 245_000));
    expect(first).toBeGreaterThan(20);
    expect(first! + rest.reduce((sum, want) => sum + want, 0)).toBeLessThanOrEqual(40);
  });

  it('is never exceeded by the sum, whatever requests cost', () => {
    const cost = fc.integer({ min: 1, max: 9 });
    const app = fc.record({ cost, requests: fc.integer({ min: 0, max: 50 }) });
    fc.assert(
      fc.property(
        fc.array(app, { minLength: 1, maxLength: 12 }),
        fc.nat({ max: 300 }),
        (given, cap) => {
          const held = given.map((one, i) => appOf(i, one.requests, one.cost));
          const sum = wantsOf(held, cap).reduce((a, b) => a + b, 0);
          expect(sum).toBeLessThanOrEqual(cap);
        },
      ),
    );
  });
});

describe('the stock of an app', () => {
  it('is whole requests', () => {
    const app = appOf(0, 5, 7);
    expect(new StockPlan(SETTINGS, [app]).want(app, NOW + 50_000) % 7).toBe(0);
  });

  it('is none where requests come now and then', () => {
    const app = appOf(0, 1);
    for (let i = 1; i <= 5; i++) app.demand.add(1, NOW + i * 1_000_000);
    expect(app.target(SETTINGS.horizonMicros, NOW + 5_000_000)).toBe(0);
  });

  it('follows demand that has gone elsewhere within a few slots', () => {
    const app = appOf(0, 400);
    const before = app.target(SETTINGS.horizonMicros, NOW + 49_999);
    app.demand.add(1, NOW + 60_000);
    expect(app.target(SETTINGS.horizonMicros, NOW + 260_000)).toBeLessThan(before / 4);
  });
});

describe('a shortage', () => {
  const reply = (shortage: 'none' | 'app' | 'cluster') => {
    const others = { retryAfterMicros: 1000, remaining: 0, nodes: 1, share: 0 };
    return { app: 0, granted: 0, needs: [], shortage, ...others };
  };

  it('of the app is not over because calls did not ask for it at all', () => {
    const app = appOf(0, 40);
    const plan = new StockPlan(SETTINGS, [app]);
    const writer = new CallWriter({ nodeId: 'n', incarnation: '1' }, [app], plan);
    const callAt = (at: number, shortage: 'none' | 'app'): number => {
      const { call } = writer.write(NOW + at, 50_000);
      app.applyReply(reply(shortage), [], NOW + at, NOW + at);
      return call.apps[0]?.want ?? 0;
    };
    expect(callAt(20_000, 'app')).toBeGreaterThan(0);
    // Calls for other apps, before the pace lets this one ask again.
    expect([callAt(21_000, 'none'), callAt(22_000, 'none')]).toEqual([0, 0]);
    expect(app.lastShortage).toBe('app');
    expect(callAt(71_000, 'none')).toBeGreaterThan(0);
    expect(callAt(72_000, 'none')).toBeGreaterThanOrEqual(0);
    expect(callAt(123_000, 'none')).toBeGreaterThan(0);
    expect(app.lastShortage).toBe('none');
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
