import { createRateLimiter, type QuotaOptions } from 'nestjs-weir';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';
import { settle } from '../../lib/testing/manual-clock.js';

const NONE = { allowed: 0, denied: 0, shadowDenied: 0 };

describe('the counts of a policy', () => {
  it('tell what was decided here, by outcome', () => {
    const bench = new Bench({ rate: 2, period: '1h' });
    bench.takeMany(5);
    const { bySource, ...counts } = bench.limiter.stats().policies.p!;
    expect(bySource).toEqual({
      local: { allowed: 2, denied: 3, shadowDenied: 0 },
      store: NONE,
      fallback: NONE,
    });
    expect(counts).toMatchObject({ allowed: 2, denied: 3, fallback: 0 });
  });

  it('tell what was decided without the store', async () => {
    const clock = new ManualClock();
    const options = { host: '127.0.0.1', port: 1 };
    const store = { type: 'redis', options, decisionTimeout: '20ms' } as const;
    const policies = {
      own: { rate: 2, period: '1h' },
      watched: { rate: 1, period: '1h', shadow: true },
    } as const;
    const limiter = createRateLimiter({ policies, store, clock });
    const decided = ['own', 'own', 'own', 'watched', 'watched'].map((policy) =>
      Promise.resolve(limiter.tryAcquire({ policy, key: 'k' })),
    );
    await settle();
    await clock.advanceAsync(30);
    await Promise.all(decided);
    const { own, watched } = limiter.stats().policies;
    expect(own!.bySource.fallback).toEqual({ allowed: 2, denied: 1, shadowDenied: 0 });
    expect(watched!.bySource.fallback).toEqual({ allowed: 1, denied: 0, shadowDenied: 1 });
    expect([own!.fallback, watched!.fallback]).toEqual([3, 2]);
    await limiter.close();
  });

  it('tell how often less than a fifth of the tokens was left, by one policy or several', () => {
    const bench = new Bench({ rate: 10, period: '1h' });
    bench.takeMany(12);
    expect(bench.limiter.stats().policies.p!.scarce).toBe(2);
    const policies = { a: { rate: 10, period: '1h' }, b: { rate: 100, period: '1h' } } as const;
    const limiter = createRateLimiter({ policies, clock: new ManualClock() });
    const both = [
      { policy: 'a', key: 'k' },
      { policy: 'b', key: 'k' },
    ];
    for (let take = 0; take < 12; take++) now(limiter.tryAcquire(both));
    expect(limiter.stats().policies.a!.scarce).toBe(2);
    expect(limiter.stats().policies.b!.scarce).toBe(0);
  });

  it('tell who waits', async () => {
    const bench = new Bench({ rate: 1, period: '1s' });
    bench.take();
    const waits = ['k', 'k'].map((key) => bench.limiter.acquire({ policy: 'p', key }));
    expect(bench.limiter.stats().waiting).toEqual({ p: 2 });
    await bench.clock.advanceAsync(2500);
    await Promise.all(waits);
    expect(bench.limiter.stats().waiting).toEqual({});
  });
});

describe('the counts of a quota', () => {
  const taken = (quota: QuotaOptions, requests: Record<string, number>) => {
    const limiter = createRateLimiter({ quota, clock: new ManualClock() });
    for (const [app, count] of Object.entries(requests)) {
      for (let request = 0; request < count; request++) now(limiter.tryAcquire({ app, cost: 2 }));
    }
    return limiter.stats().quota!.apps;
  };

  it('tell where requests were decided, and the tokens used', () => {
    const apps = { shop: { guaranteed: 10, burst: 10 } };
    const { shop } = taken({ apps, maxCost: 2 }, { shop: 40 });
    const { local, store, fallback } = shop!.bySource;
    expect(local.allowed + store.allowed).toBe(shop!.allowed);
    expect(local.denied + store.denied).toBe(40 - shop!.allowed);
    expect(local.deniedByCluster + store.deniedByCluster).toBe(0);
    expect(fallback).toEqual({ allowed: 0, denied: 0, deniedByCluster: 0 });
    expect(shop).toMatchObject({ used: shop!.allowed * 2, guaranteed: 10, burst: 10 });
  });

  it('tell how many nodes may serve an app, also of one that nobody has asked for', () => {
    const apps = { shop: { guaranteed: 10, burst: 10 }, idle: { guaranteed: 10, burst: 10 } };
    const { shop, idle } = taken({ apps, maxCost: 2 }, { shop: 1 });
    expect([shop!.nodes, idle!.nodes]).toEqual([1, 1]);
  });

  it('tell which level had not enough', () => {
    const apps = { shop: { guaranteed: 10, burst: 100 } };
    const { shop } = taken({ cluster: { capacity: 30 }, apps, maxCost: 2 }, { shop: 200 });
    const { local, store } = shop!.bySource;
    expect(local.deniedByCluster + store.deniedByCluster).toBeGreaterThan(0);
  });
});
