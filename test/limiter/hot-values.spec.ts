import fc from 'fast-check';
import {
  createRateLimiter,
  type Decision,
  type PolicyInput,
  type RateLimiter,
  UnknownPolicyError,
} from 'nestjs-weir';
import { refusal, unknownOption } from '../support/errors.js';
import { startRedis, stopAll, until, withRedis, type RedisProcess } from '../support/index.js';
import { Bench, now, together } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const HOT = { rate: 100, hot: true } satisfies PolicyInput;

const ALGORITHMS: [string, PolicyInput][] = [
  ['token bucket', HOT],
  ['leaky bucket', { ...HOT, algorithm: 'leaky-bucket' }],
  ['sliding window', { ...HOT, algorithm: 'sliding-window' }],
];

const withPolicy = (policy: unknown) => () =>
  createRateLimiter({ policies: { p: policy as PolicyInput }, clock: new ManualClock() });

describe('a policy with hot values', () => {
  it.each(ALGORITHMS)('lets a tenth of the limit pass uncounted, then counts: %s', (_, policy) => {
    const bench = new Bench(policy);
    const first = Array.from({ length: 10 }, () => bench.take());
    expect(first.map(({ cold, allowed, remaining }) => [cold, allowed, remaining])).toEqual(
      Array.from({ length: 10 }, (_one, i) => [true, true, 99 - i]),
    );
    expect(first[0]).toMatchObject({ source: 'local', limit: 100, retryAfterMs: 0, delayMs: 0 });
    expect(bench.limiter.stats().keys).toBe(0);
    const next = bench.take();
    expect(next).toMatchObject({ allowed: true, remaining: 99 });
    expect(next).not.toHaveProperty('cold');
    expect(bench.takeMany(1000)).toBe(99);
    expect(bench.limiter.stats()).toMatchObject({
      keys: 1,
      policies: { p: { allowed: 110, cold: 10, denied: 901 } },
    });
  });

  it('admits at most 1.1 times the limit more than its bucket would in any period', () => {
    const request = fc.record({
      cost: fc.integer({ min: 1, max: 12 }),
      passedMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 600 })),
    });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 200 }), (requests) => {
        const bench = new Bench(HOT);
        const cold: { at: number; cost: number }[] = [];
        for (const { cost, passedMs } of requests) {
          bench.clock.advance(passedMs);
          const at = bench.clock.now();
          if (bench.take(cost).cold) cold.push({ at, cost });
          const uncounted = cold.filter((one) => one.at > at - 1_000_000);
          expect(uncounted.reduce((sum, one) => sum + one.cost, 0)).toBeLessThanOrEqual(10);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('counts a value no more once nobody asks for it any more', () => {
    const bench = new Bench(HOT);
    bench.takeMany(50);
    bench.clock.advance(2000);
    expect(bench.take()).toMatchObject({ cold: true });
  });

  it('has no entry for values that are not in demand', () => {
    const bench = new Bench(HOT);
    for (let i = 0; i < 5000; i++) bench.take(1, { key: `k${i}` });
    expect(bench.limiter.stats()).toMatchObject({ keys: 0, policies: { p: { cold: 5000 } } });
  });

  it('tells which values are most in demand', () => {
    const bench = new Bench({ ...HOT, tiers: { vip: 1000 } });
    for (let i = 1; i <= 20; i++) {
      for (let count = 0; count < i; count++) bench.take(1, { key: `k${i}` });
    }
    bench.take(50, { key: 'k1', tier: 'vip' });
    expect(bench.limiter.hotValues('p', 3)).toEqual([
      { key: 'k1', perPeriod: 50 },
      { key: 'k20', perPeriod: 20 },
      { key: 'k19', perPeriod: 19 },
    ]);
    expect(bench.limiter.hotValues('p')).toHaveLength(10);
    expect(new Bench({ rate: 1 }).limiter.hotValues('p')).toEqual([]);
    expect(() => bench.limiter.hotValues('q')).toThrow(UnknownPolicyError);
    expect(() => bench.limiter.hotValues('p', 65)).toThrow(refusal('count', 65));
    expect(() => bench.limiter.hotValues('p', 0)).toThrow(refusal('count', 0));
  });

  it('says at which rate a value is asked for, allowed or not, and of no other policy', () => {
    const bench = new Bench({ ...HOT, rate: '100/s' });
    for (let second = 0; second < 3; second++) {
      for (let i = 0; i < 50; i++) {
        bench.take();
        bench.clock.advance(20);
      }
    }
    const rate = bench.limiter.currentRate({ policy: 'p', key: 'k' })!;
    expect(rate).toBeGreaterThanOrEqual(45);
    expect(rate).toBeLessThanOrEqual(55);
    expect(bench.limiter.currentRate({ policy: 'p', key: 'unseen' })).toBe(0);
    expect(bench.limiter.hotCounts()).toEqual({ p: 1 });
    bench.clock.advance(5000);
    expect(bench.limiter.currentRate({ policy: 'p', key: 'k' })).toBe(0);
    expect(bench.limiter.hotCounts()).toEqual({ p: 0 });
    const plain = new Bench({ rate: 1 }).limiter;
    expect(plain.currentRate({ policy: 'p', key: 'k' })).toBeUndefined();
    expect(plain.hotCounts()).toEqual({});
    expect(() => plain.currentRate({ policy: 'q', key: 'k' })).toThrow(UnknownPolicyError);
  });

  it('is all or nothing with others, and a request that passed uncounted is no reason for a denial', () => {
    const limiter = createRateLimiter({
      policies: { hot: HOT, few: { rate: '2/h' } },
      clock: new ManualClock(),
    });
    const both = [
      { policy: 'hot', key: 'k' },
      { policy: 'few', key: 'k' },
    ];
    const take = (): Decision => now(limiter.tryAcquire(both));
    expect(take().decisions).toMatchObject([
      { policy: 'few', allowed: true },
      { policy: 'hot', allowed: true, cold: true },
    ]);
    take();
    expect(take().decisions).toMatchObject([{ policy: 'few', allowed: false }]);
    limiter.define({ also: HOT });
    const rare = ['hot', 'also'].map((policy) => ({ policy, key: 'rare' }));
    expect(now(limiter.tryAcquire(rare))).toMatchObject({ allowed: true, cold: true });
    expect(now(limiter.tryAcquire([both[0]!]))).toMatchObject({ cold: true });
    expect(limiter.stats().policies).toMatchObject({
      hot: { allowed: 4, cold: 4 },
      few: { allowed: 2, denied: 1 },
    });
  });

  it('gives nothing back for a request that took nothing', () => {
    const bench = new Bench({ ...HOT, period: '1h' });
    const cold = bench.take(5);
    const counted = bench.take(60);
    expect([cold.cold, counted.cold]).toEqual([true, undefined]);
    now(bench.limiter.refund({ policy: 'p', key: 'k', cost: 5 }, cold));
    expect(bench.peek().remaining).toBe(40);
    now(bench.limiter.refund({ policy: 'p', key: 'k', cost: 60 }, counted));
    expect(bench.peek().remaining).toBe(100);
  });

  it('is not changed by a peek', () => {
    const bench = new Bench(HOT);
    bench.takeMany(4);
    for (let i = 0; i < 20; i++) expect(bench.peek()).toMatchObject({ cold: true, remaining: 96 });
    expect(bench.peek(7)).not.toHaveProperty('cold');
  });

  it('says once that the limit is too small for it', () => {
    const bench = new Bench({ rate: 9, hot: true });
    const told: unknown[] = [];
    bench.limiter.on('hot_idle', (event) => told.push(event));
    for (let i = 0; i < 3; i++) expect(bench.take()).not.toHaveProperty('cold');
    expect(told).toEqual([{ policy: 'p', limit: 9, nodes: 1 }]);
  });

  it('keeps values in demand when other options change, and counts all anew when it ends', () => {
    const bench = new Bench(HOT);
    const change = (policy: PolicyInput, revision: number) =>
      bench.limiter.prepare({ policies: { p: policy }, revision })();
    bench.takeMany(50);
    change({ ...HOT, maxWaiters: 5 }, 1);
    expect(bench.take()).not.toHaveProperty('cold');
    change({ rate: 100 }, 2);
    expect(bench.take(1, { key: 'new' })).not.toHaveProperty('cold');
    expect(bench.limiter.hotValues('p')).toEqual([]);
  });
});

describe('values with a tier of their own', () => {
  const POLICY: PolicyInput = {
    rate: '100/h',
    tiers: { flagship: '1000/h', slow: '2/h' },
    values: { 'sku-42': 'flagship', 'sku-13': 'slow' },
  };

  it.each([
    ['counted', POLICY],
    ['hot', { ...POLICY, hot: true }],
  ])('have its figures, and always count: %s', (_, policy) => {
    const bench = new Bench(policy);
    const limitOf = (key: string, tier?: string) =>
      bench.take(1, { key, ...(tier !== undefined && { tier }) }).limit;
    expect([limitOf('sku-42'), limitOf('sku-13'), limitOf('other')]).toEqual([1000, 2, 100]);
    expect([limitOf('sku-42', 'slow'), limitOf('sku-13', 'default')]).toEqual([2, 100]);
    expect(bench.take(1, { key: 'sku-13' })).toMatchObject({ allowed: true, remaining: 0 });
    expect(bench.take(1, { key: 'sku-13' }).allowed).toBe(false);
    const listed = now(bench.limiter.tryAcquire([{ policy: 'p', key: 'sku-42' }]));
    expect(listed).toMatchObject({ limit: 1000, remaining: 998 });
    expect(now(bench.limiter.peek({ policy: 'p', key: 'sku-13' })).limit).toBe(2);
    now(bench.limiter.reset({ policy: 'p', key: 'sku-13' }));
    expect(bench.take(1, { key: 'sku-13' }).allowed).toBe(true);
  });

  it('are those of the latest configuration', () => {
    const bench = new Bench({ ...POLICY, hot: true });
    const values = { other: 'flagship' };
    bench.limiter.prepare({ policies: { p: { ...POLICY, hot: true, values } }, revision: 1 })();
    expect(bench.take(1, { key: 'sku-42' })).toMatchObject({ limit: 100, cold: true });
    expect(bench.take(1, { key: 'other' })).toMatchObject({ limit: 1000, remaining: 999 });
    bench.limiter.prepare({ policies: { p: { rate: '100/h' } }, revision: 2 })();
    expect(bench.take(1, { key: 'other' })).toMatchObject({ limit: 100, remaining: 99 });
  });

  it('may be longer than keys that are kept as they are', () => {
    const long = 'x'.repeat(500);
    const bench = new Bench({ ...POLICY, values: { [long]: 'slow' } });
    expect(bench.take(1, { key: long }).limit).toBe(2);
  });
});

describe('a policy is refused', () => {
  it.each([1, 'yes', null, []])('with hot: %p', (hot) => {
    expect(withPolicy({ rate: 100, hot })).toThrow(refusal('policies.p.hot', hot));
  });

  it.each([0, 512, 4095, 131_072, 1.5, '4096', NaN])('with hot: { width: %p }', (width) => {
    const field = 'policies.p.hot.width';
    expect(withPolicy({ rate: 100, hot: { width } })).toThrow(refusal(field, width));
  });

  it('with an unknown option of hot, and with hot beside a shaper', () => {
    expect(withPolicy({ rate: 1, hot: { size: 1 } })).toThrow(unknownOption('policies.p.hot.size'));
    const shaper = { algorithm: 'leaky-bucket', mode: 'shaper', rate: 100 };
    expect(withPolicy({ ...shaper, hot: true })).toThrow(refusal('policies.p.hot', true));
    expect(withPolicy({ ...shaper, hot: false })).not.toThrow();
  });

  it('with values of a tier that is not there, with none, and with more than 10,000', () => {
    expect(withPolicy({ rate: 1, values: { a: 'vip' } })).toThrow(
      refusal('policies.p.values.a', 'vip'),
    );
    expect(withPolicy({ rate: 1, values: ['a'] })).toThrow(refusal('policies.p.values', ['a']));
    const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [i, 'default']));
    expect(withPolicy({ rate: 1, values: many })).toThrow(refusal('policies.p.values', 10_001));
  });
});

describe('hot values of a fleet', () => {
  let server: RedisProcess;
  const limiters: RateLimiter[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
    await withRedis(server.port, (client) => client.flushall());
  });

  afterAll(() => stopAll());

  /** Nodes that know of each other, on one clock. */
  async function fleet(count: number, policy: PolicyInput) {
    const clock = new ManualClock();
    const policies = { p: policy };
    const store = { type: 'redis', url: server.url } as const;
    for (let i = 0; i < count; i++) {
      limiters.push(createRateLimiter({ policies, store, clock }));
      await limiters[i]!.ready();
    }
    const [last] = limiters;
    await until(async () => {
      clock.advance(1000);
      for (const one of limiters) await one.tryAcquire({ policy: 'p', key: 'nobody' });
      return last!.stats().policies.p!.cold > 0;
    });
    for (let beats = 0; beats < 2; beats++) {
      clock.advance(1000);
      for (const one of limiters) await one.tryAcquire({ policy: 'p', key: 'nobody' });
      // The reply to the beat.
      for (const one of limiters) await one.peek({ policy: 'p', key: 'nobody', cost: 100 });
    }
    return { clock, limiters };
  }

  const scriptCalls = () =>
    withRedis(server.port, async (client) => {
      const stats = await client.info('commandstats');
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    });

  it('cost the store nothing for 100,000 values that are not in demand', async () => {
    const { limiters: nodes } = await fleet(1, { rate: '1000/h', hot: { width: 65_536 } });
    const before = await scriptCalls();
    for (let i = 0; i < 100_000; i++) {
      const decision = now(nodes[0]!.tryAcquire({ policy: 'p', key: `k${i}` }));
      if (decision.cold !== true) throw new Error(`k${i} was counted`);
    }
    expect(await scriptCalls()).toBe(before);
  });

  it.each(['exact', 'leased'] as const)(
    'are admitted at most 1.1 times their limit by three nodes: %s',
    async (sync) => {
      const { limiters: nodes } = await fleet(3, { rate: '1000/h', hot: true, sync });
      let allowed = 0;
      for (let round = 0; round < 60; round++) {
        const asked = nodes.flatMap((one) =>
          Array.from({ length: 10 }, () => one.tryAcquire({ policy: 'p', key: 'k' })),
        );
        const decisions = await together(asked);
        allowed += decisions.filter((decision) => decision.allowed).length;
      }
      // As much as the store has, and a tenth of it divided by three on each; a little flows in meanwhile.
      expect(allowed).toBeGreaterThanOrEqual(sync === 'exact' ? 1000 + 3 * 33 : 1000);
      expect(allowed).toBeLessThanOrEqual(1100);
      const cold = nodes.map((one) => one.stats().policies.p!.cold);
      expect(cold.every((count) => count >= 33)).toBe(true);
    },
  );
});
