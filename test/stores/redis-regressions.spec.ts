import {
  createRateLimiter,
  type PolicyInput,
  type RateLimiter,
  type StoreSwitch,
} from 'nestjs-weir';
import { Redis } from 'ioredis';
import { errorWith } from '../support/errors.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  withRedis,
  type RedisProcess,
} from '../support/index.js';
import { now } from '../support/limiters.js';
import { ManualClock, settle } from '../support/manual-clock.js';

const K = { policy: 'p', key: 'k' };

describe('the limiter on Redis, at its edges', () => {
  let server: RedisProcess;
  const limiters: RateLimiter[] = [];
  let prefixes = 0;

  async function one(policy: PolicyInput, prefix = `edge${prefixes++}`): Promise<RateLimiter> {
    const limiter = createRateLimiter({
      policies: { p: policy },
      store: { type: 'redis', url: server.url, prefix, decisionTimeout: '1s' },
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

  it('closing while a caller’s take is on its way rejects the caller, and the tokens go back', async () => {
    const policy: PolicyInput = { rate: 10, period: '1d' };
    const limiter = await one(policy, 'closing');
    const rejected = expect(limiter.acquire(K)).rejects.toMatchObject({ code: 'LIMITER_CLOSED' });
    await settle();
    await limiter.close();
    await rejected;
    const later = await one(policy, 'closing');
    expect(await later.peek(K)).toMatchObject({ remaining: 10 });
  });

  it('a share that grows with the cost gives away no tokens', async () => {
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      policies: { p: { rate: 100, period: '1h' } },
      store: { type: 'redis', url: 'redis://127.0.0.1:1' },
      clock,
    });
    limiters.push(limiter);
    const first = limiter.tryAcquire(K);
    await clock.advanceAsync(20);
    let taken = (await first).allowed ? 1 : 0;
    for (let cost = 2; cost <= 100; cost++) {
      if (now(limiter.tryAcquire({ ...K, cost })).allowed) taken += cost;
    }
    expect(taken).toBeLessThanOrEqual(100);
  });

  it('remembers a denial although tokens of other keys come back all the time', async () => {
    const limiter = await one({ rate: 1, period: '1h' });
    await limiter.tryAcquire(K);
    let fromMemory = 0;
    for (let i = 0; i < 50; i++) {
      const denied = limiter.tryAcquire(K);
      const refund = limiter.refund({ policy: 'p', key: `other${i}` });
      if ((await denied).source === 'local') fromMemory++;
      await refund;
    }
    expect(fromMemory).toBeGreaterThanOrEqual(48);
  });

  it('does not take a busy process for a dead Redis', async () => {
    const limiter = createRateLimiter({
      // Five requests in a row may earn a lease, and Redis is to be asked for each here.
      policies: { p: { rate: 1000, sync: 'exact' } },
      store: { type: 'redis', url: server.url, prefix: 'busy' },
    });
    limiters.push(limiter);
    await limiter.ready();
    await limiter.tryAcquire(K);
    const sources: string[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const decision = limiter.tryAcquire(K);
      await settle();
      // Many times the deadline, so that Redis has answered by then on a busy machine too.
      const busyUntil = performance.now() + 200;
      while (performance.now() < busyUntil);
      sources.push((await decision).source);
    }
    expect(sources).toEqual(['store', 'store', 'store']);
  });

  it('is not told that all is well by a Redis that runs no scripts', async () => {
    await withRedis(server.port, (client) =>
      client.acl('SETUSER', 'plain', 'on', '>secret', '~*', '+@all', '-@scripting'),
    );
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      policies: { p: { rate: 1000 } },
      store: {
        type: 'redis',
        options: { port: server.port, username: 'plain', password: 'secret' },
      },
      clock,
    });
    limiters.push(limiter);
    await limiter.ready();
    const switches: StoreSwitch[] = [];
    limiter.on('store', (event) => switches.push(event));
    for (let turn = 0; turn < 300; turn++) {
      const decision = limiter.tryAcquire({ policy: 'p', key: `k${turn}` });
      await clock.advanceAsync(10);
      await decision;
    }
    expect(switches.map(({ state }) => state)).toEqual(['down']);
  });

  it('acquire keeps its timeout while Redis is silent, and takes what is there with a timeout of 0', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      policies: { p: { rate: 10, period: '1d' } },
      store: { type: 'redis', url: proxy.url, prefix: 'silent', decisionTimeout: '1s' },
      clock,
    });
    limiters.push(limiter);
    await limiter.ready();
    expect(await limiter.acquire(K, { timeoutMs: 0 })).toMatchObject({ allowed: true });
    proxy.holdReplies();
    const rejected = expect(limiter.acquire(K, { timeoutMs: 10 })).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
    });
    await clock.advanceAsync(10);
    await rejected;
    proxy.releaseReplies();
    await until(async () => (await limiter.peek(K)).remaining === 9);
  });

  it('says why there is no connection', async () => {
    const limiter = createRateLimiter({
      store: { type: 'redis', url: 'redis://127.0.0.1:1' },
      policies: { p: { rate: 1 } },
    });
    limiters.push(limiter);
    await expect(limiter.ready(200)).rejects.toThrow(/ECONNREFUSED/);
  });

  it('understands a client that gives numbers as texts', async () => {
    const client = new Redis(server.adminUrl, { stringNumbers: true });
    const limiter = createRateLimiter({
      policies: { p: { rate: 10, period: '1h' } },
      store: { type: 'redis', client, prefix: 'texts', decisionTimeout: '1s' },
    });
    limiters.push(limiter);
    await limiter.ready();
    await limiter.tryAcquire({ ...K, cost: 10 });
    const denied = await limiter.tryAcquire(K);
    expect(denied).toMatchObject({ allowed: false, remaining: 0 });
    expect(denied.retryAfterMs).toBeGreaterThan(300_000);
    client.disconnect();
  });

  it('resets after what was asked before', async () => {
    const limiter = await one({ rate: 5, period: '1h' });
    const taken = limiter.tryAcquire({ ...K, cost: 5 });
    const reset = limiter.reset(K);
    await taken;
    await reset;
    expect(await limiter.peek(K)).toMatchObject({ remaining: 5 });
  });

  it.each([
    ['store.url', { url: '' }],
    ['store.cluster.nodes', { cluster: { nodes: [] } }],
    ['store.client', { client: {} as Redis }],
  ])('refuses a %s that leads nowhere', (field, options) => {
    expect(() => createRateLimiter({ store: { type: 'redis', ...options } })).toThrow(
      errorWith({ code: 'INVALID_ARGUMENT', field }),
    );
  });
});
