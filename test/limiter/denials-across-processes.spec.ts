import { createRateLimiter, type Decision, type PolicyInput, type RateLimiter } from 'nestjs-weir';
import { startRedis, stopAll, withRedis, type RedisProcess } from '../support/index.js';
import { now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const REQUEST = { policy: 'p', key: 'k' };
const POLICIES: [string, PolicyInput][] = [
  ['a bucket', { rate: '2/h', sync: 'exact' }],
  ['a bucket whose keys may be leased', { rate: '2/h' }],
  ['a window', { rate: '2/h', algorithm: 'sliding-window' }],
  ['a leaky bucket', { rate: '2/h', algorithm: 'leaky-bucket' }],
];

type Event = (other: RateLimiter, server: RedisProcess) => unknown;
const EVENTS: [string, Event][] = [
  ['a reset', (other) => other.reset(REQUEST)],
  ['a refund', (other) => other.refund({ ...REQUEST, cost: 2 })],
  ['a flush', (_other, server) => withRedis(server.port, (client) => client.flushall())],
];
const CASES = POLICIES.flatMap(([policy, options]) =>
  EVENTS.map(([event, happens]) => ({ policy, options, event, happens })),
);

/** A denial is remembered where it was heard; what happens elsewhere must end it nevertheless. */
describe('denials of a store that processes share', () => {
  let server: RedisProcess;
  const limiters: RateLimiter[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  beforeEach(() => withRedis(server.port, (client) => client.flushall()));

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  });

  afterAll(() => stopAll());

  async function process(options: PolicyInput) {
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      policies: { p: options },
      store: { type: 'redis', url: server.url },
      clock,
    });
    limiters.push(limiter);
    await limiter.ready();
    return { limiter, clock, ask: (): Decision | Promise<Decision> => limiter.tryAcquire(REQUEST) };
  }

  it.each(CASES)('$policy: $event elsewhere is felt within a second', async (one) => {
    const { options, happens } = one;
    const [a, b] = [await process(options), await process(options)];
    for (const allowed of [true, true, false]) {
      expect(await a.ask()).toMatchObject({ allowed, source: 'store' });
    }
    await happens(b.limiter, server);
    a.clock.advance(999);
    expect(now(a.ask())).toMatchObject({ allowed: false, source: 'local' });
    a.clock.advance(1);
    expect(await a.ask()).toMatchObject({ allowed: true, source: 'store' });
  });

  it('are told in full, also where they are remembered', async () => {
    const { ask, clock } = await process({ rate: '2/h', sync: 'exact' });
    await ask();
    await ask();
    const { retryAfterMs, resetMs } = await ask();
    expect(retryAfterMs).toBeGreaterThan(1_700_000);
    clock.advance(400);
    const told = now(ask());
    expect(told).toMatchObject({ allowed: false, source: 'local', resetMs });
    expect(told.retryAfterMs).toBe(retryAfterMs - 400);
  });

  it('cost the store one call a second, however many are asked for', async () => {
    const { ask, clock } = await process({ rate: '2/h', sync: 'exact' });
    await ask();
    await ask();
    const calls = async (): Promise<number> =>
      withRedis(server.port, async (client) => {
        const stats = await client.info('commandstats');
        // Nothing else here reads with MGET.
        return Number(/cmdstat_mget:calls=(\d+)/.exec(stats)?.[1]);
      });
    const before = await calls();
    for (let ms = 0; ms < 5000; ms += 5) {
      const { allowed } = await ask();
      expect(allowed).toBe(false);
      clock.advance(5);
    }
    expect((await calls()) - before).toBe(5);
  });

  it.each(CASES)('$policy: $event elsewhere is felt by who waits', async (one) => {
    const { options, happens } = one;
    const [a, b] = [await process(options), await process(options)];
    for (const allowed of [true, true, false]) expect(await a.ask()).toMatchObject({ allowed });
    const served: Decision[] = [];
    const waiting = [1, 2].map(() => a.limiter.acquire(REQUEST).then((got) => served.push(got)));
    await happens(b.limiter, server);
    await a.clock.advanceAsync(1000);
    expect(served).toHaveLength(0);
    await a.clock.advanceAsync(1);
    await Promise.all(waiting);
    expect(served).toMatchObject([{ allowed: true }, { allowed: true }]);
  });

  it('do not keep anybody waiting who would wait in vain', async () => {
    const { limiter, ask } = await process({ rate: '2/h', sync: 'exact' });
    await ask();
    await ask();
    await expect(limiter.acquire(REQUEST, { timeoutMs: 60_000 })).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
    });
  });
});
