import { Redis } from 'ioredis';
import { createRateLimiter, type RateLimiter, type RateLimiterOptions } from 'nestjs-weir';
import { InProcessRedis, ManualClock } from 'nestjs-weir/testing';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisOrders } from '../../lib/stores/redis/redis-orders.js';
import { RedisProbeLease } from '../../lib/stores/redis/redis-probe-lease.js';
import { startRedis, stopAll, until } from '../support/index.js';

const limiters: RateLimiter[] = [];
afterEach(async () => {
  await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
});
afterAll(stopAll);

function nodesOn(redis: InProcessRedis, options: RateLimiterOptions, count = 2): RateLimiter[] {
  const nodes = Array.from({ length: count }, (_, index) =>
    createRateLimiter({
      ...options,
      ...{ nodeId: `n${index}`, store: redis.store({ decisionTimeout: '5s' }) },
    }),
  );
  limiters.push(...nodes);
  return nodes;
}

describe('a Redis in process', () => {
  it('has nodes share a policy', async () => {
    const policies = { login: { rate: 10, period: '1h', sync: 'exact' } } as const;
    const nodes = nodesOn(new InProcessRedis(), { policies });
    const allowed: boolean[] = [];
    for (let n = 0; n < 12; n++) {
      allowed.push(await nodes[n % 2]!.allow('login', 'ann'));
    }
    expect(allowed).toEqual([...Array<boolean>(10).fill(true), false, false]);
    expect(await nodes[0]!.allow('login', 'bob')).toBe(true);
  });

  it('has nodes share a quota, and tells how it stands', async () => {
    const quota = {
      cluster: { capacity: 1000 },
      apps: { shop: { guaranteed: 100, burst: 200 }, desk: { guaranteed: 50, burst: 50 } },
    };
    const nodes = nodesOn(new InProcessRedis(), { quota });
    for (const node of nodes) expect((await node.tryAcquire({ app: 'shop' })).allowed).toBe(true);
    const status = await until(async () => {
      const found = await nodes[0]!.quota.status();
      return found.apps.shop!.consumption.count === 2 ? found : undefined;
    });
    expect(status).toMatchObject({ capacity: 1000, depth: 200, nodes: 2 });
    expect(status.apps.shop).toMatchObject({ guaranteed: 100, burst: 200, used: 2 });
    expect(status.apps.desk!.used).toBe(0);
  });

  it('can be away: nodes go on with their share, and find it again', async () => {
    const redis = new InProcessRedis();
    const policies = { api: { rate: '1000/s', sync: 'exact' } } as const;
    const [node] = nodesOn(redis, { policies }) as [RateLimiter];
    const states: string[] = [];
    node.on('store', ({ state }) => states.push(state));
    const source = async (): Promise<string> =>
      (await node.tryAcquire({ policy: 'api', key: 'k' })).source;
    expect(await source()).toBe('store');
    redis.goAway();
    await until(async () => (await source()) === 'fallback');
    expect(states).toEqual(['down']);
    redis.comeBack();
    await until(async () => (await source()) === 'store');
    expect(states).toEqual(['down', 'up']);
  });

  it('has the time of a test', async () => {
    const clock = new ManualClock();
    const policies = { login: { rate: 1, period: '1m', sync: 'exact' } } as const;
    const [node] = nodesOn(new InProcessRedis({ clock }), { policies, clock }) as [RateLimiter];
    const take = async (): Promise<boolean> => {
      const asked = node.allow('login', 'ann');
      for (let turn = 0; turn < 10; turn++) await clock.advanceAsync(0);
      return asked;
    };
    expect([await take(), await take()]).toEqual([true, false]);
    clock.advance(60_000);
    expect(await take()).toBe(true);
  });

  it('is one of many: two have nothing in common', async () => {
    const policies = { login: { rate: 1, period: '1h', sync: 'exact' } } as const;
    for (const redis of [new InProcessRedis(), new InProcessRedis()]) {
      const [node] = nodesOn(redis, { policies }) as [RateLimiter];
      expect(await node.allow('login', 'ann')).toBe(true);
    }
  });

  it('answers for orders and the right to probe as a server does', async () => {
    const { driver } = new InProcessRedis().store();
    const { url } = await startRedis();
    const [inProcess, real] = [new driver!.Redis(), new Redis(url)];
    const told = await Promise.all([inProcess, real].map(ordersAndProbes));
    expect(told[0]).toEqual(told[1]);
    for (const client of [inProcess, real]) client.disconnect();
  });
});

/** All that can be seen of orders and probes, but for instants. */
async function ordersAndProbes(client: Redis): Promise<unknown[]> {
  await until(() => client.status === 'ready');
  const clock = new SystemClock();
  const orders = new RedisOrders({ client, prefix: 'weir', timeoutMs: 5000 }, clock);
  const order = { kind: 'warm', by: 'ann' } as const;
  const seen: unknown[] = [];
  seen.push(await orders.put({ ...order, resource: 'page' }), await orders.put(order));
  seen.push(
    await orders.claim(1, 'shop', 'n1', 60_000),
    await orders.claim(1, 'shop', 'n2', 60_000),
  );
  seen.push(await orders.claim(1, 'desk', 'n2', 60_000), await orders.claim(9, 'shop', 'n1', 1));
  seen.push(await orders.cancel(1), await orders.cancel(2), await orders.cancel(2));
  seen.push(await orders.claim(1, 'shop', 'n1', 60_000, { error: 'x' }));
  seen.push(await orders.claim(1, 'shop', 'n1', 60_000));
  for (const { id, resource, by, claims } of (await orders.read()).orders) {
    // A server has the fields of a hash in any order.
    const sorted = [...claims].sort(([one], [other]) => (one < other ? -1 : 1));
    seen.push([id, resource, by, sorted.map(([of, { node, result }]) => [of, node, result])]);
  }
  for (let n = 0; n < 16; n++) seen.push(await orders.put(order));
  const leases = [1, 2].map(() => {
    return new RedisProbeLease({ client, prefix: 'weir', timeoutMs: 5000 }, clock);
  });
  seen.push(await leases[0]!.tryHold('db', 60_000), await leases[1]!.tryHold('db', 60_000));
  leases[0]!.release('db');
  seen.push(await leases[1]!.tryHold('db', 60_000));
  return seen;
}
