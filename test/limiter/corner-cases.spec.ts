import { createRateLimiter, type PolicyInput, type RateLimiter } from 'nestjs-weir';
import { errorWith } from '../support/errors.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { Bench, now, together } from '../support/limiters.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { statesOf, Waiter } from '../support/waiters.js';

const K = { policy: 'p', key: 'k' };

describe('corner cases in memory', () => {
  it('close rejects also whom the leaving of the first would let through', async () => {
    const bench = new Bench({ rate: 10, burst: 10 });
    bench.take(5);
    const waiters = [new Waiter(bench, { cost: 10 }), new Waiter(bench)];
    await settle();
    await bench.limiter.close();
    expect(await statesOf(...waiters)).toEqual(['rejected', 'rejected']);
  });

  it.each([true, false])(
    'several policies, one of them a shadow: decisions (allowed %p)',
    (allowed) => {
      const policies = { real: { rate: 1 }, trial: { rate: 5, shadow: true } };
      const limiter = createRateLimiter({ policies, clock: new ManualClock() });
      const both = ['real', 'trial'].map((policy) => ({ policy, key: 'k' }));
      if (!allowed) now(limiter.tryAcquire(both));
      expect(now(limiter.tryAcquire(both)).decisions).toContainEqual(
        expect.objectContaining({ policy: 'real', allowed }),
      );
    },
  );

  it('a list of one has no decisions, shadow or not', () => {
    const bench = new Bench({ rate: 1, shadow: true });
    expect(now(bench.limiter.tryAcquire([K])).decisions).toBeUndefined();
  });

  it('the empty policy name is unknown like any other', async () => {
    const unknown = errorWith({
      code: 'UNKNOWN_POLICY',
      field: 'policy',
      value: '',
    });
    const { limiter } = new Bench({ rate: 1 });
    expect(() => limiter.allow('', 'k')).toThrow(unknown);
    await limiter.close();
    expect(() => limiter.allow('', 'k')).toThrow(errorWith({ code: 'LIMITER_CLOSED' }));
  });

  it('a refund to any of the policies wakes who waits for all of them', async () => {
    const clock = new ManualClock();
    const policies = { a: { rate: 10 }, b: { rate: 1, period: '1d' } } as const;
    const limiter = createRateLimiter({ policies, clock });
    const both = ['a', 'b'].map((policy) => ({ policy, key: 'k' }));
    now(limiter.tryAcquire(both));
    let served = false;
    void limiter.acquire(both).then(() => (served = true));
    await settle();
    now(limiter.refund(both[1]!));
    await settle();
    expect(served).toBe(true);
  });

  it('the parts of a decision for which the wait is over say so too', async () => {
    const clock = new ManualClock();
    const shaper = {
      algorithm: 'leaky-bucket',
      mode: 'shaper',
      rate: 10,
    } as const;
    const limiter = createRateLimiter({
      policies: { a: shaper, b: shaper },
      clock,
    });
    const both = ['a', 'b'].map((policy) => ({ policy, key: 'k' }));
    now(limiter.tryAcquire(both));
    const held = limiter.acquire(both);
    await clock.advanceAsync(100);
    expect((await held).decisions?.map(({ delayMs }) => delayMs)).toEqual([0, 0]);
  });

  it.each<[string, object]>([
    ['period', { period: 'garbage', tiers: { a: '5/s' }, defaultTier: 'a' }],
    ['burst', { burst: -1, tiers: { a: 5 }, defaultTier: 'a' }],
  ])('a bad %s that no tier takes over is refused all the same', (option, policy) => {
    const make = () =>
      createRateLimiter({
        policies: { p: policy as PolicyInput },
        clock: new ManualClock(),
      });
    expect(make).toThrow(errorWith({ field: `policies.p.${option}` }));
  });
});

describe('corner cases on Redis', () => {
  let server: RedisProcess;
  const limiters: RateLimiter[] = [];
  let prefixes = 0;

  async function one(
    policies: Record<string, PolicyInput>,
    prefix = `corner${prefixes++}`,
  ): Promise<RateLimiter> {
    const limiter = createRateLimiter({
      policies,
      store: { type: 'redis', url: server.url, prefix, decisionTimeout: '5s' },
    });
    limiters.push(limiter);
    await limiter.ready();
    return limiter;
  }

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    await stopAll();
  });

  it.each([
    ['in the same turn', async () => {}],
    ['while the call is on its way', () => settle()],
  ])('a refund %s wakes the first in line', async (_name, between) => {
    const limiter = await one({ p: { rate: 1, period: '1d' } });
    await limiter.tryAcquire(K);
    let served = false;
    limiter.acquire(K).then(
      () => (served = true),
      () => {},
    );
    await between();
    await limiter.refund(K);
    await until(() => served, { timeoutMs: 1000 });
  });

  it('a denial that is older than a refund is not remembered after it', async () => {
    const limiter = await one({ p: { rate: 1, period: '1d' } });
    await limiter.tryAcquire(K);
    const denied = limiter.tryAcquire(K);
    await limiter.refund(K);
    expect((await denied).allowed).toBe(false);
    expect((await limiter.tryAcquire(K)).allowed).toBe(true);
  });

  it('close returns to Redis what those had who were held back', async () => {
    const policies: Record<string, PolicyInput> = {
      p: { algorithm: 'leaky-bucket', mode: 'shaper', rate: 10, period: '1d' },
    };
    const [leaving, staying] = [await one(policies, 'same'), await one(policies, 'same')];
    await leaving.tryAcquire(K);
    const held = leaving.acquire({ ...K, cost: 3 });
    const rejected = expect(held).rejects.toMatchObject({
      code: 'LIMITER_CLOSED',
    });
    await until(async () => (await staying.peek(K)).remaining === 6);
    await leaving.close();
    await rejected;
    await until(async () => (await staying.peek(K)).remaining === 9, {
      timeoutMs: 1000,
    });
  });

  it('a denied request is not counted as allowed by the policies of this process', async () => {
    const limiter = await one({
      tight: { rate: 1, period: '1d' },
      node: { rate: 100, period: '1d', scope: 'node' },
    });
    const both = ['tight', 'node'].map((policy) => ({ policy, key: 'k' }));
    await limiter.tryAcquire(both);
    const denied = await limiter.tryAcquire(both);
    expect(denied.decisions?.map(({ policy }) => policy)).toEqual(['tight']);
    expect(limiter.stats().policies.node).toMatchObject({ allowed: 1 });
  });

  it('more calls than a batch holds wait for the first connection', async () => {
    const limiter = createRateLimiter({
      policies: { p: { rate: 1000 } },
      store: {
        type: 'redis',
        url: server.url,
        prefix: 'first',
        decisionTimeout: '5s',
      },
    });
    limiters.push(limiter);
    const decisions = await together(Array.from({ length: 100 }, () => limiter.tryAcquire(K)));
    expect(decisions.filter(({ source }) => source === 'fallback')).toHaveLength(0);
  });
});
