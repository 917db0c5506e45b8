import { Redis } from 'ioredis';
import {
  createRateLimiter,
  type AcquireRequest,
  type Decision,
  type PolicyInput,
  type RateLimiter,
} from 'nestjs-weir';
import { errorWith } from '../support/errors.js';
import { infoField, startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { now, together } from '../support/limiters.js';

describe('the limiter on Redis', () => {
  let server: RedisProcess;
  let client: Redis;
  const limiters: RateLimiter[] = [];
  let prefixes = 0;

  /** A fleet of one or more limiters that share their own corner of the server. */
  async function fleet(
    policies: Record<string, PolicyInput>,
    size = 1,
    prefix = `t${prefixes++}`,
  ): Promise<RateLimiter[]> {
    const made = Array.from({ length: size }, () =>
      createRateLimiter({
        policies,
        // Generous: these tests are about decisions, and the machine may be busy.
        store: { type: 'redis', url: server.url, prefix, decisionTimeout: '5s' },
      }),
    );
    limiters.push(...made);
    await Promise.all(made.map((limiter) => limiter.ready()));
    return made;
  }

  async function one(policies: Record<string, PolicyInput>, prefix?: string): Promise<RateLimiter> {
    return (await fleet(policies, 1, prefix))[0]!;
  }

  /** Calls of lua/buckets.lua so far: nothing else here reads with MGET. */
  async function scriptCalls(): Promise<number> {
    const stats = infoField(await client.info('commandstats'), 'cmdstat_mget') ?? '';
    return Number(/calls=(\d+)/.exec(stats)?.[1] ?? '0');
  }

  async function commands(): Promise<number> {
    return Number(infoField(await client.info('stats'), 'total_commands_processed'));
  }

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl);
  });

  afterAll(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    client.disconnect();
    await stopAll();
  });

  it('V-C6: tells what Redis decided, with the clock of Redis', async () => {
    const limiter = await one({ p: { rate: 10 } });
    const [seconds] = await client.time();
    const decision = await limiter.tryAcquire({ policy: 'p', key: 'k' });
    expect(decision).toMatchObject({ allowed: true, remaining: 9, limit: 10, source: 'store' });
    expect(Math.abs(decision.timestampMs / 1000 - Number(seconds))).toBeLessThan(5);
  });

  it('V-B24: fifty at once from two limiters share one burst of five', async () => {
    const [a, b] = await fleet({ p: { rate: 5, period: '1d' } }, 2);
    const decisions = await together(
      Array.from({ length: 50 }, (_, i) => (i % 2 ? a : b)!.tryAcquire({ policy: 'p', key: 'k' })),
    );
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5);
  });

  it('V-C7, V-C8: holds where whole seconds and lost keys would let everything through', async () => {
    const limiter = await one({ p: { rate: 100, burst: 10 } });
    const startMs = performance.now();
    let allowed = 0;
    for (let i = 0; i < 50; i++) {
      if ((await limiter.tryAcquire({ policy: 'p', key: 'k' })).allowed) allowed++;
    }
    const elapsedMs = performance.now() - startMs;
    expect(allowed).toBeLessThanOrEqual(10 + Math.ceil(elapsedMs / 10));
  });

  it.each([
    [10, 2, 10_000],
    [10, 100, 200],
    [100, 10, 20_000],
    [1, 3, 667],
    [1000, 1, 2_000_000],
    [80_000, 20_000, 8000],
  ])('V-B13, V-E3: burst %i at %i/s lives for %i ms', async (burst, rate, ttlMs) => {
    const prefix = `ttl${prefixes++}`;
    const limiter = await one({ p: { rate, burst } }, prefix);
    await limiter.tryAcquire({ policy: 'p', key: 'k', cost: 1 });
    const [key] = await client.keys(`${prefix}:*:p:*`);
    const left = key === undefined ? 0 : await client.pttl(key);
    expect(left).toBeLessThanOrEqual(ttlMs);
    if (ttlMs > 1000) expect(left).toBeGreaterThan(ttlMs - 5000);
  });

  it.each([
    [64, 1],
    [65, 2],
    [150, 3],
  ])(
    'sends %i misses of one turn, whatever their keys and policies, in %i script calls',
    async (misses, calls) => {
      const limiter = await one({
        p: { rate: 10 },
        w: { rate: 10, algorithm: 'sliding-window' },
        l: { rate: 10, algorithm: 'leaky-bucket' },
      });
      await limiter.tryAcquire({ policy: 'p', key: 'first' });
      const before = await scriptCalls();
      const requests = Array.from({ length: misses }, (_, i) => ({
        policy: ['p', 'w', 'l'][i % 3]!,
        key: `key${i % 40}`,
      }));
      const decisions = await together(requests.map((request) => limiter.tryAcquire(request)));
      expect((await scriptCalls()) - before).toBe(calls);
      expect(decisions.every(({ allowed, source }) => allowed && source === 'store')).toBe(true);
    },
  );

  it('decides within a batch in the order of the calls', async () => {
    const limiter = await one({ p: { rate: 3, period: '1h' } });
    const decisions = await together(
      Array.from({ length: 5 }, () => limiter.tryAcquire({ policy: 'p', key: 'k' })),
    );
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false]);
    expect(decisions.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0, 0]);
  });

  it('remembers a denial: a flood costs no command, and is answered at once', async () => {
    const limiter = await one({ p: { rate: 2, period: '1h' } });
    await limiter.tryAcquire({ policy: 'p', key: 'k', cost: 2 });
    await limiter.tryAcquire({ policy: 'p', key: 'k' });
    const before = await commands();
    // All within the second for which a denial is remembered, however slow the expectations are.
    const flood = Array.from({ length: 1000 }, () =>
      now(limiter.tryAcquire({ policy: 'p', key: 'k' })),
    );
    for (const decision of flood) {
      expect(decision).toMatchObject({ allowed: false, source: 'local' });
      expect(decision.retryAfterMs).toBeGreaterThan(0);
    }
    // The two INFO calls are all that Redis has seen.
    expect((await commands()) - before).toBe(1);
  });

  it('asks again for less than what was denied, and after a refund or reset', async () => {
    const limiter = await one({ p: { rate: 5, period: '1h' } });
    const ask = (cost: number): Decision | Promise<Decision> =>
      limiter.tryAcquire({ policy: 'p', key: 'k', cost });
    await ask(3);
    expect((await ask(3)).allowed).toBe(false);
    expect((await ask(1)).allowed).toBe(true);
    expect((await ask(3)).allowed).toBe(false);
    await limiter.refund({ policy: 'p', key: 'k', cost: 3 });
    expect((await ask(3)).allowed).toBe(true);
    expect((await ask(3)).allowed).toBe(false);
    await limiter.reset({ policy: 'p', key: 'k' });
    expect((await ask(5)).allowed).toBe(true);
  });

  it.each<[string, PolicyInput]>([
    ['token bucket', { rate: 4, burst: 5 }],
    ['leaky policer', { rate: 4, burst: 5, algorithm: 'leaky-bucket' }],
    ['leaky shaper', { rate: 4, burst: 5, algorithm: 'leaky-bucket', mode: 'shaper' }],
  ])(
    'answers a larger cost from a remembered denial with a wait that is enough: %s',
    async (_name, policy) => {
      const limiter = await one({ p: policy });
      const ask = (cost: number): Decision | Promise<Decision> =>
        limiter.tryAcquire({ policy: 'p', key: 'k', cost });
      const taken = await ask(5);
      const askedMs = performance.now();
      const denied = await ask(1);
      const answeredMs = performance.now();
      // By so much the way to Redis may differ from one call to the next.
      const tripMs = Math.ceil(answeredMs - askedMs) + 2;
      expect([taken.allowed, denied.allowed, denied.source]).toEqual([true, false, 'store']);
      const larger = now(ask(5));
      expect(larger).toMatchObject({ allowed: false, remaining: 0, source: 'local' });
      // Redis gave the last of five tokens at `taken`, and all of them are back 1250 ms later.
      const fullMs = taken.timestampMs + 1250;
      const retryMs = larger.timestampMs + larger.retryAfterMs;
      expect(Math.abs(retryMs - fullMs)).toBeLessThanOrEqual(tripMs);
      await new Promise((resolve) => setTimeout(resolve, larger.retryAfterMs + tripMs));
      expect(await ask(5)).toMatchObject({ allowed: true, source: 'store' });
    },
  );

  it('lengthens a remembered denial by what the larger cost takes, and no denial of less', async () => {
    const limiter = await one({ p: { rate: 10, period: '10h' } });
    const ask = (cost: number): Decision | Promise<Decision> =>
      limiter.tryAcquire({ policy: 'p', key: 'k', cost });
    await ask(10);
    await ask(2);
    const before = await commands();
    const [same, more, most] = [now(ask(2)), now(ask(3)), now(ask(10))];
    expect((await commands()) - before).toBe(1);
    const hours = [same, more, most].map(({ retryAfterMs }) => retryAfterMs / 3_600_000);
    [2, 3, 10].forEach((expected, index) => expect(hours[index]).toBeCloseTo(expected, 1));
    expect(await ask(1)).toMatchObject({ allowed: false, source: 'store' });
  });

  it('asks Redis about a larger cost of a sliding window, whose wait it cannot tell', async () => {
    const limiter = await one({ p: { rate: 5, period: '1h', algorithm: 'sliding-window' } });
    const ask = (cost: number): Decision | Promise<Decision> =>
      limiter.tryAcquire({ policy: 'p', key: 'k', cost });
    await ask(5);
    expect(await ask(1)).toMatchObject({ allowed: false, source: 'store' });
    const same = now(ask(1));
    expect(same).toMatchObject({ allowed: false, source: 'local' });
    const before = await scriptCalls();
    const larger = await ask(5);
    expect(larger).toMatchObject({ allowed: false, source: 'store' });
    expect((await scriptCalls()) - before).toBe(1);
    // Tokens taken in one sub-window come back at one moment.
    expect(larger.retryAfterMs).toBeLessThanOrEqual(same.retryAfterMs);
    expect(larger.retryAfterMs).toBeGreaterThan(0.8 * 3_600_000);
    expect(now(ask(5))).toMatchObject({ allowed: false, source: 'local' });
  });

  it('wakes the first in line at once after a refund or reset', async () => {
    const limiter = await one({ p: { rate: 2, period: '1d' } });
    const request = { policy: 'p', key: 'k' };
    await limiter.tryAcquire({ ...request, cost: 2 });
    const served: number[] = [];
    const waiting = [0, 1, 2].map(async (index) => {
      const decision = await limiter.acquire(request);
      served.push(index);
      return decision;
    });
    // Once a denial is remembered, the first in line has its answer and waits for its timer.
    await until(() => !(limiter.tryAcquire(request) instanceof Promise));
    await limiter.refund(request);
    expect(await waiting[0]).toMatchObject({ allowed: true, remaining: 0, source: 'store' });
    expect(served).toEqual([0]);
    await until(() => !(limiter.tryAcquire(request) instanceof Promise));
    await limiter.reset(request);
    await Promise.all(waiting);
    expect(served).toEqual([0, 1, 2]);
  });

  it('peeks without taking', async () => {
    const limiter = await one({ p: { rate: 5, period: '1h' } });
    await limiter.tryAcquire({ policy: 'p', key: 'k', cost: 2 });
    expect(await limiter.peek({ policy: 'p', key: 'k' })).toMatchObject({
      allowed: true,
      remaining: 3,
    });
    expect(await limiter.peek({ policy: 'p', key: 'k', cost: 4 })).toMatchObject({
      allowed: false,
      remaining: 3,
    });
    expect(await limiter.peek({ policy: 'p', key: 'new' })).toMatchObject({ remaining: 5 });
  });

  it('takes several policies all or nothing, node scope among them', async () => {
    const limiter = await one({
      wide: { rate: 100, period: '1h' },
      tight: { rate: 1, period: '1h' },
      node: { rate: 100, period: '1h', scope: 'node' },
    });
    const request: AcquireRequest[] = [
      { policy: 'wide', key: 'k' },
      { policy: 'tight', key: 'k' },
      { policy: 'node', key: 'k' },
    ];
    const allowed = await limiter.tryAcquire(request);
    expect(allowed).toMatchObject({ allowed: true, policy: 'tight', remaining: 0 });
    expect(allowed.decisions?.map(({ policy }) => policy).sort()).toEqual([
      'node',
      'tight',
      'wide',
    ]);
    for (let i = 0; i < 10; i++) {
      const denied = await limiter.tryAcquire(request);
      expect(denied).toMatchObject({
        allowed: false,
        policy: 'tight',
        source: i === 0 ? 'store' : 'local',
      });
      expect(denied.decisions).toContainEqual(
        expect.objectContaining({ policy: 'tight', allowed: false }),
      );
    }
    expect(await limiter.peek({ policy: 'wide', key: 'k' })).toMatchObject({ remaining: 99 });
    expect(await limiter.peek({ policy: 'node', key: 'k' })).toMatchObject({ remaining: 99 });
  });

  it('recovers when Redis has forgotten the scripts', async () => {
    const limiter = await one({ p: { rate: 10 } });
    await limiter.tryAcquire({ policy: 'p', key: 'k' });
    await client.script('FLUSH');
    expect(await limiter.tryAcquire({ policy: 'p', key: 'k' })).toMatchObject({
      allowed: true,
      source: 'store',
    });
  });

  it('keeps how full a bucket is when the figures change', async () => {
    const prefix = `figures${prefixes++}`;
    const before = await one({ p: { rate: 10, period: '1h' } }, prefix);
    await before.tryAcquire({ policy: 'p', key: 'k', cost: 5 });
    const after = await one({ p: { rate: 1000, period: '1d' } }, prefix);
    expect(await after.peek({ policy: 'p', key: 'k' })).toMatchObject({ remaining: 500 });
  });

  it('keeps keys apart that could be taken for one another', async () => {
    const limiter = await one({ p: { rate: 1, period: '1h' }, 'p.q': { rate: 1, period: '1h' } });
    const long = 'x'.repeat(10_000_000);
    const keys = ['a', 'a:b', '{a}', '}{', 'a b', 'ä', '\ud800', '\ud801', '\ufffd', '', ' '];
    keys.push(long, `${long}y`, '#', '#a', 'p:default:1:a', 'a\r\nDEL *', '\0');
    for (const policy of ['p', 'p.q']) {
      for (const key of keys.filter((one) => one !== '')) {
        expect((await limiter.tryAcquire({ policy, key })).allowed).toBe(true);
      }
    }
    const names = await client.keys('*');
    expect(Math.max(...names.map((name) => name.length))).toBeLessThan(400);
  });

  it('waits for tokens on Redis too', async () => {
    const limiter = await one({ p: { rate: 50, burst: 1 } });
    const startMs = performance.now();
    await Promise.all([1, 2, 3].map(() => limiter.acquire({ policy: 'p', key: 'k' })));
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(39);
    await expect(
      limiter.acquire({ policy: 'p', key: 'k' }, { timeoutMs: 1 }),
    ).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
  });

  it('uses a client of yours, with its key prefix, and never closes it', async () => {
    const own = new Redis(server.url, { keyPrefix: 'mine:' });
    const limiter = createRateLimiter({
      policies: { p: { rate: 10 } },
      store: { type: 'redis', client: own, decisionTimeout: '5s' },
    });
    await limiter.ready();
    expect((await limiter.tryAcquire({ policy: 'p', key: 'yours' })).source).toBe('store');
    expect(await client.keys('mine:weir:*yours')).toHaveLength(1);
    await limiter.close();
    expect(await own.ping()).toBe('PONG');
    own.disconnect();
  });

  it.each([{}, { url: 'redis://127.0.0.1', cluster: { nodes: [] } }])(
    'refuses to guess which Redis is meant: %j',
    (options) => {
      expect(() => createRateLimiter({ store: { type: 'redis', ...options } })).toThrow(
        errorWith({ code: 'INVALID_ARGUMENT', field: 'store' }),
      );
    },
  );

  it('leaves nothing running when it is closed', async () => {
    const limiter = await one({ p: { rate: 10 } });
    await limiter.close();
    await limiter.close();
    const request = { policy: 'p', key: 'k' };
    const closed = errorWith({ code: 'LIMITER_CLOSED' });
    expect(() => limiter.tryAcquire(request)).toThrow(closed);
    expect(() => limiter.peek(request)).toThrow(closed);
    expect(() => limiter.refund(request)).toThrow(closed);
    expect(() => limiter.reset(request)).toThrow(closed);
    await expect(limiter.acquire(request)).rejects.toEqual(closed);
  });
});
