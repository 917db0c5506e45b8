import { createRateLimiter, type QuotaOptions, type RateLimiter } from 'nestjs-weir';
import { startRedis, stopAll, until, withRedis, type RedisProcess } from '../support/index.js';

const QUOTA: QuotaOptions = {
  clusterId: 'main',
  cluster: { capacity: 10_000 },
  apps: {
    orders: { guaranteed: 1000, burst: 4000, priority: 0 },
    reports: { guaranteed: 500, burst: 1000, priority: 2 },
  },
  local: { reserveTarget: 100 },
};

describe('ClusterQuota.status', () => {
  let server: RedisProcess;
  const made: RateLimiter[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await Promise.all(made.map((limiter) => limiter.close()));
    await stopAll();
  });

  function onMemory(): RateLimiter {
    const limiter = createRateLimiter({ quota: QUOTA });
    made.push(limiter);
    return limiter;
  }

  function onRedis(): RateLimiter {
    const store = { type: 'redis', url: server.url, decisionTimeout: '1s' } as const;
    const limiter = createRateLimiter({ quota: QUOTA, store });
    made.push(limiter);
    return limiter;
  }

  describe.each([
    ['memory', onMemory],
    ['redis', onRedis],
  ])('on %s', (_name, open) => {
    it('tells of a cluster that nobody has called yet', async () => {
      const limiter = open();
      await limiter.ready();
      const status = await limiter.quota.status();
      expect(status).toMatchObject({ asOfMs: 0, capacity: 10_000, depth: 2000, level: 2000 });
      expect(status).toMatchObject({
        outstanding: 0,
        used: 0,
        demand: 0,
        nodes: 0,
        overloaded: false,
      });
    });

    it('tells what is leased, granted, used and asked for, and by how many nodes', async () => {
      const limiter = open();
      await limiter.ready();
      for (let i = 0; i < 60; i++) {
        await limiter.tryAcquire({ app: 'orders', cost: 1, method: 'GET' });
      }
      await until(async () => {
        const { apps } = await limiter.quota.status();
        return apps.orders!.used === 60 && apps.orders!.consumption.count === 60;
      });
      const status = await limiter.quota.status();
      expect(Math.abs(status.asOfMs - Date.now())).toBeLessThan(5000);
      expect(status).toMatchObject({ epoch: 1, nodes: 1, used: 60, overloaded: false });
      const { orders, reports } = status.apps;
      expect(orders).toMatchObject({ guaranteed: 1000, burst: 4000, nodes: 1, used: 60 });
      expect(orders!.granted).toBe(60 + orders!.outstanding);
      expect(status.outstanding).toBe(orders!.outstanding);
      const { consumption } = orders!;
      expect(consumption.byMethod).toEqual({
        GET: { cost: consumption.cost, count: consumption.count },
      });
      expect(reports).toMatchObject({ granted: 0, used: 0, outstanding: 0, nodes: 0 });
      expect(reports!.consumption).toEqual({ cost: 0, count: 0, byMethod: {} });
    });
  });

  it('counts consumption once, in a hash of its own that outlives the ledger', async () => {
    const fields = await withRedis(server.port, (client) => client.hgetall('weir:{main}:consumed'));
    expect(Object.keys(fields).sort()).toEqual([
      'cost|orders',
      'cost|orders|GET',
      'count|orders',
      'count|orders|GET',
    ]);
  });

  it('is not there without a quota', () => {
    const limiter = createRateLimiter({ policies: { p: { rate: 1 } } });
    made.push(limiter);
    expect(() => limiter.quota).toThrow(/quota in its options/);
  });

  it('counts decisions in stats', async () => {
    const limiter = onMemory();
    for (let i = 0; i < 50; i++) await limiter.tryAcquire({ app: 'orders' });
    const { quota } = limiter.stats();
    expect(quota).toMatchObject({ decisions: 50, remoteCalls: 1, localHits: 49 });
    expect(quota!.apps.orders).toMatchObject({ mode: 'batch', allowed: 50, denied: 0, tokens: 51 });
  });
});
