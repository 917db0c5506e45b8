import { createRateLimiter, type Decision, type RateLimiter, type StoreSwitch } from 'nestjs-weir';
import { ConnectionWait, connectRedis } from '../../lib/stores/redis/connection.js';
import { RedisKeys } from '../../lib/stores/redis/keys.js';
import {
  startRedisCluster,
  startSentinel,
  stopAll,
  until,
  type RedisCluster,
} from '../support/index.js';
import { together } from '../support/limiters.js';

const KEYS = Array.from({ length: 200 }, (_, i) => `user:${i}`);

describe('the limiter on Redis Cluster', () => {
  let cluster: RedisCluster;
  let limiter: RateLimiter;
  const switches: StoreSwitch[] = [];

  beforeAll(async () => {
    cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 1 });
    limiter = createRateLimiter({
      policies: {
        p: { rate: 3, period: '1h' },
        q: { rate: 1, period: '1h' },
        wide: { rate: 1000, period: '1h' },
      },
      store: {
        type: 'redis',
        cluster: { nodes: cluster.nodes.map(({ host, port }) => ({ host, port })) },
        decisionTimeout: '1s',
      },
    });
    limiter.on('store', (event) => switches.push(event));
    await limiter.ready();
  });

  afterAll(async () => {
    await limiter.close();
    await stopAll();
  });

  it('leaves no timers behind when clients are closed while they look for the masters', async () => {
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    // Some of them belong to the limiter of the other tests, and come and go.
    const others = timers() + 5;
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
    const settings = { cluster: { nodes, options: { slotsRefreshInterval: 1 } } };
    const clients = Array.from({ length: 30 }, () => connectRedis(settings).client);
    await Promise.all(clients.map((one) => new ConnectionWait(one).whenReady()));
    const ends = clients.map((one) => new Promise((resolve) => one.once('end', resolve)));
    for (const one of clients) one.disconnect();
    await Promise.all(ends);
    await until(() => timers() < others, { what: 'the last timer', timeoutMs: 10_000 });
  });

  it('V-C11: keys of all slots at once, each with its own bucket', async () => {
    const decisions = await together(
      KEYS.flatMap((key) =>
        Array.from({ length: 5 }, () => limiter.tryAcquire({ policy: 'p', key })),
      ),
    );
    expect(decisions.every(({ source }) => source === 'store')).toBe(true);
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(KEYS.length * 3);
  });

  it('takes policies with keys in different shards all or nothing', async () => {
    const names = new RedisKeys('weir');
    const far = KEYS.find((key) => names.shardOf(key) !== names.shardOf('here'))!;
    const request = [
      { policy: 'wide', key: 'here' },
      { policy: 'q', key: far },
    ];
    expect((await limiter.tryAcquire(request)).allowed).toBe(true);
    for (let i = 0; i < 5; i++) {
      // Without the remembered denial each of these goes to both shards.
      await limiter.refund({ policy: 'q', key: 'nobody' });
      const denied: Decision = await limiter.tryAcquire(request);
      expect(denied).toMatchObject({ allowed: false, policy: 'q' });
    }
    const left = await limiter.peek({ policy: 'wide', key: 'here' });
    expect(left.remaining).toBe(999);
  });

  it('leases hot keys in their shards', async () => {
    const hot = KEYS.slice(0, 5).map((key) => ({ policy: 'wide', key: `hot ${key}` }));
    for (const request of hot) {
      await together(Array.from({ length: 10 }, () => limiter.tryAcquire(request)));
      await until(() => !(limiter.tryAcquire(request) instanceof Promise), { what: 'a lease' });
    }
    expect(limiter.stats().policies.wide!.leased).toBeGreaterThanOrEqual(hot.length);
    const used = async (): Promise<number> => {
      const left = await together(hot.map((request) => limiter.peek(request)));
      return left.reduce((sum, { remaining }) => sum + 1000 - remaining, 0);
    };
    // Tokens that are just on their way back are seen neither here nor there, for a moment.
    await until(async () => (await used()) === limiter.stats().policies.wide!.allowed - 1);
  });

  it('gives back in one shard what another denied', async () => {
    const names = new RedisKeys('weir');
    const [a, b] = [KEYS[0]!, KEYS.find((key) => names.shardOf(key) !== names.shardOf(KEYS[0]!))!];
    const other = createRateLimiter({
      policies: { q: { rate: 1, period: '1h' }, wide: { rate: 1000, period: '1h' } },
      store: {
        type: 'redis',
        cluster: { nodes: cluster.nodes.map(({ host, port }) => ({ host, port })) },
        prefix: 'other',
        decisionTimeout: '1s',
      },
    });
    await other.ready();
    await other.tryAcquire({ policy: 'q', key: b });
    const decision = await other.tryAcquire([
      { policy: 'wide', key: a, cost: 7 },
      { policy: 'q', key: b },
    ]);
    expect(decision).toMatchObject({ allowed: false, policy: 'q', source: 'store' });
    await until(async () => (await other.peek({ policy: 'wide', key: a })).remaining === 1000);
    await other.close();
  });

  it('goes on without one master, tells of it once, and is whole again after the failover', async () => {
    switches.length = 0;
    await cluster.killMaster(0);
    const answers = await together(
      KEYS.map((key) => limiter.tryAcquire({ policy: 'wide', key: `${key}:a` })),
    );
    const bySource = (source: string): number =>
      answers.filter((one) => one.source === source).length;
    expect(bySource('store') + bySource('fallback')).toBe(KEYS.length);
    expect(bySource('store')).toBeGreaterThan(0);
    await cluster.failedOver(0);
    await until(
      async () => {
        const again = await together(
          KEYS.map((key) => limiter.tryAcquire({ policy: 'wide', key: `${key}:b` })),
        );
        return again.every(({ source }) => source === 'store');
      },
      { timeoutMs: 20_000, intervalMs: 100 },
    );
    await until(() => switches.at(-1)?.state === 'up', { timeoutMs: 10_000 });
    expect(switches.map(({ state }) => state)).toEqual(['down', 'up']);
  });

  it('gives the connection to a master up that goes silent, and no other', async () => {
    const ask = async (): Promise<Decision[]> =>
      together(KEYS.map((key) => limiter.tryAcquire({ policy: 'wide', key: `${key}:c` })));
    await until(async () => (await ask()).every(({ source }) => source === 'store'));
    const { silences } = limiter.stats().store!;
    const silent = cluster.processes[1]!;
    silent.pause();
    await until(
      async () => {
        const answers = await ask();
        expect(answers.some(({ source }) => source !== 'fallback')).toBe(true);
        return limiter.stats().store!.silences > silences;
      },
      { timeoutMs: 20_000, intervalMs: 50 },
    );
    silent.resume();
    await until(async () => (await ask()).every(({ source }) => source !== 'fallback'), {
      timeoutMs: 20_000,
      intervalMs: 100,
    });
  });
});

describe('the limiter on Sentinel', () => {
  afterAll(stopAll);

  it('follows the primary when it fails over', async () => {
    const redis = await startSentinel();
    const limiter = createRateLimiter({
      policies: { p: { rate: 100, period: '1h' } },
      store: {
        type: 'redis',
        options: {
          sentinels: redis.sentinels.map(({ host, port }) => ({ host, port })),
          name: redis.name,
        },
        decisionTimeout: '1s',
      },
    });
    const states: string[] = [];
    limiter.on('store', ({ state }) => states.push(state));
    await limiter.ready();
    expect((await limiter.tryAcquire({ policy: 'p', key: 'k' })).source).toBe('store');
    await redis.primary.kill();
    expect((await limiter.tryAcquire({ policy: 'p', key: 'k' })).source).toBe('fallback');
    await redis.failedOver();
    await until(
      async () => (await limiter.tryAcquire({ policy: 'p', key: 'k' })).source === 'store',
      {
        timeoutMs: 20_000,
      },
    );
    expect(states).toEqual(['down', 'up']);
    await limiter.close();
  });
});
