import {
  createRateLimiter,
  type PolicyFields,
  type PolicyInput,
  type RateLimiter,
} from 'nestjs-weir';
import { freePort } from '../support/free-port.js';
import { startRedis, stopAll, until, withRedis, type RedisProcess } from '../support/index.js';
import { now, together } from '../support/limiters.js';

const K = { policy: 'p', key: 'k' };
const PLAN = { rate: 3, period: '1h' } as const;

describe('a limit that comes with the request, on Redis', () => {
  let redis: RedisProcess;
  const limiters: RateLimiter[] = [];
  let prefixes = 0;

  beforeAll(async () => {
    redis = await startRedis();
  });

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  });

  afterAll(stopAll);

  /** As many processes that share one policy. */
  async function fleet(count: number, policy: PolicyFields): Promise<RateLimiter[]> {
    const prefix = `given${prefixes++}`;
    for (let i = 0; i < count; i++) {
      const store = { type: 'redis', url: redis.url, prefix, decisionTimeout: '5s' } as const;
      limiters.push(
        createRateLimiter({
          policies: { p: policy as PolicyInput, q: { rate: '2/h' } },
          store,
        }),
      );
    }
    await Promise.all(limiters.map((limiter) => limiter.ready()));
    return [...limiters];
  }

  it.each<[name: string, policy: PolicyFields]>([
    ['token bucket', { sync: 'exact' }],
    ['leaky policer', { algorithm: 'leaky-bucket' }],
    ['leaky shaper', { algorithm: 'leaky-bucket', mode: 'shaper' }],
    ['sliding window', { algorithm: 'sliding-window' }],
  ])('is one bucket for all processes: %s', async (_name, policy) => {
    const [a, b] = (await fleet(2, { ...policy, rate: '1/h' })) as [RateLimiter, RateLimiter];
    const answers = await together(
      [a, b, a, b].map((limiter, i) => limiter.tryAcquire({ ...K, limit: i < 2 ? PLAN : '3/h' })),
    );
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3);
    const own = await together([a, b].map((limiter) => limiter.tryAcquire(K)));
    expect(own.filter(({ allowed }) => allowed)).toHaveLength(1);
    // The denial is remembered where it came, for these figures only.
    expect(await a.tryAcquire({ ...K, limit: PLAN })).toMatchObject({ allowed: false });
    expect(now(a.tryAcquire({ ...K, limit: '3/h' }))).toMatchObject({
      ...{ allowed: false, source: 'local', limit: 3, windowMs: 3_600_000 },
    });
    expect(await a.tryAcquire({ ...K, limit: '4/h' })).toMatchObject({ allowed: true });
  });

  it('is peeked at, refunded, reset, and taken in lists that are all or nothing', async () => {
    const [a, b] = (await fleet(2, { rate: '1/h', sync: 'exact' })) as [RateLimiter, RateLimiter];
    const asked = { ...K, limit: PLAN };
    expect(await a.allowN('p', 'k', 3, PLAN)).toBe(true);
    await b.refund({ ...asked, cost: 2 });
    expect((await b.peek(asked)).remaining).toBe(2);
    const list = [asked, { policy: 'q', key: 'k' }];
    const many = await together(
      [a, b].flatMap((one) => [one, one]).map((one) => one.tryAcquire(list)),
    );
    expect(many.map(({ allowed }) => allowed).filter(Boolean)).toHaveLength(2);
    expect((await b.peek(asked)).remaining).toBe(0);
    await a.reset(asked);
    expect((await b.peek(asked)).remaining).toBe(3);
    // The other policy has nothing left, so nothing is taken here either.
    expect((await a.tryAcquire(list)).allowed).toBe(false);
    expect((await a.peek(asked)).remaining).toBe(3);
  });

  it('is leased where it is in demand, and never more than it holds', async () => {
    const [a, b] = (await fleet(2, { rate: '1/h', sync: 'leased' })) as [RateLimiter, RateLimiter];
    const limit = { rate: 1, period: '1h', burst: 500 } as const;
    let allowed = 0;
    for (let turn = 0; turn < 100; turn++) {
      const answers = await together(
        [a, b].flatMap((one) => Array.from({ length: 10 }, () => one.tryAcquire({ ...K, limit }))),
      );
      allowed += answers.filter((answer) => answer.allowed).length;
    }
    const leased = [a, b].map((one) => one.stats().policies.p!.leased);
    expect(leased[0]! + leased[1]!).toBeGreaterThan(0);
    // Tokens on lease at the end are nobody's yet.
    expect(allowed).toBeLessThanOrEqual(500);
    await until(
      async () => {
        const more = await together([a, b].map((one) => one.tryAcquire({ ...K, limit })));
        allowed += more.filter((answer) => answer.allowed).length;
        return allowed === 500;
      },
      { what: 'all 500 tokens to be used' },
    );
    expect((await a.tryAcquire({ ...K, limit })).allowed).toBe(false);
  });

  it.each<[name: string, before: PolicyInput, after: PolicyInput]>([
    ['token bucket', { rate: '1/h', sync: 'exact' }, { rate: '9/h', sync: 'exact', shadow: false }],
    [
      'leaky shaper',
      { algorithm: 'leaky-bucket', mode: 'shaper', rate: '1/h' },
      { algorithm: 'leaky-bucket', mode: 'shaper', rate: '9/h', maxDelay: '3h' },
    ],
    [
      'sliding window',
      { algorithm: 'sliding-window', rate: '1/h' },
      { algorithm: 'sliding-window', rate: '9/h', subWindows: 4 },
    ],
  ])('stays used when its policy changes, here and there: %s', async (_name, before, after) => {
    const [a, b] = (await fleet(2, before)) as [RateLimiter, RateLimiter];
    const asked = { ...K, limit: PLAN };
    expect((await a.tryAcquire({ ...asked, cost: 2 })).allowed).toBe(true);
    const policies = { p: after, q: { rate: '2/h' } } as const;
    // One of the two has heard of it, and then the other as well.
    for (const limiter of [a, b]) {
      limiter.prepare({ revision: 1, policies })();
      const left = await together([a, b].map((one) => one.peek(asked)));
      expect(left.map(({ remaining }) => remaining)).toEqual([1, 1]);
    }
    expect((await b.tryAcquire(asked)).allowed).toBe(true);
    expect((await a.tryAcquire(asked)).allowed).toBe(false);
  });

  it('is called after its figures there, which no tier can be', async () => {
    const [a] = await fleet(1, { rate: '1/h' });
    await a!.tryAcquire({ ...K, limit: { rate: 1, burst: 7 } });
    const prefix = `given${prefixes - 1}`;
    const keys = await withRedis(redis.port, (client) => client.keys(`${prefix}:{b*`));
    expect(keys).toEqual([expect.stringMatching(/:p:~7-1-3600000000:1:k$/)]);
  });

  it('has its share while Redis is away, and its own failure mode', async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const limiter = createRateLimiter({
      policies: { p: { rate: '1/h' }, closed: { rate: '1/h', failureMode: 'closed' } },
      store: { type: 'redis', url },
    });
    limiters.push(limiter);
    const asked = { ...K, limit: PLAN };
    const answers = [];
    for (let i = 0; i < 5; i++) answers.push(await limiter.tryAcquire(asked));
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false]);
    expect(answers[4]).toMatchObject({ source: 'fallback', limit: 3 });
    await limiter.refund(asked, answers[0]);
    expect(await limiter.tryAcquire(asked)).toMatchObject({ allowed: true });
    const closed = await limiter.tryAcquire({ policy: 'closed', key: 'k', limit: PLAN });
    expect(closed).toMatchObject({ allowed: false, source: 'fallback' });
  });
});
