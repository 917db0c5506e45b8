import { Redis } from 'ioredis';
import { createRateLimiter } from 'nestjs-weir';
import { SystemClock } from '../../lib/common/clock.js';
import { seal } from '../../lib/stores/envelope.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { RedisOrders } from '../../lib/stores/redis/redis-orders.js';
import { RedisProbeLease } from '../../lib/stores/redis/redis-probe-lease.js';
import { connectionBeside, RedisSharedCache } from '../../lib/stores/redis/redis-shared-cache.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  type RedisProcess,
  type TcpProxy,
} from '../support/index.js';
import { expectAllAnswered } from './expectations.js';
import { Fleet } from './fleet.js';
import { type LoadProcess } from './load-process.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

/** Patience with steps that take less than two seconds; a busy machine may take its time. */
const PATIENCE = { timeoutMs: 60_000 };

const POLICIES = { p: { rate: 1000, sync: 'exact' } } as const;
/** The app and the policy that a process is asked for all the time. */
const NAMES = ['shop', 'p'];

/** Neither its policies nor its quota are decided by Redis. */
function isAway(one: LoadProcess): boolean {
  const states = one.happenings.flatMap((event) => (event.name === 'store' ? [event.state] : []));
  return states.at(-1) === 'down' && one.modesOf('shop').at(-1) === 'offline';
}

/** The first instant from which on Redis has decided all that was asked for; Infinity if it does not yet. */
function backAt({ admissions }: LoadProcess, since: number): number {
  const instants = NAMES.map((name) => {
    const later = admissions.filter(({ app, from }) => app === name && from > since);
    const last = later.findLastIndex(({ source }) => source === 'fallback');
    return later[last + 1]?.to ?? Infinity;
  });
  return Math.max(...instants);
}

describe('connections whose other side is gone without a word', () => {
  let server: RedisProcess;
  let proxy: TcpProxy;

  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startProxy({ targetPort: server.port });
  });

  afterEach(() => stopAll());

  it('are given up, and policies and quotas of all processes are back when new ones work', async () => {
    const store = { type: 'redis', url: proxy.url, decisionTimeout: '200ms' } as const;
    const fleet = new Fleet(store);
    const { processes } = fleet;
    await Promise.all([1, 2, 3].map(() => fleet.start({ policies: POLICIES })));
    for (const one of processes) one.offer(...NAMES.map((app) => ({ app, perSecond: 50 })));
    await until(() => processes.every((one) => backAt(one, 0) < Infinity), PATIENCE);
    proxy.goDead();
    await until(() => processes.every(isAway), PATIENCE);
    // New connections are made and are dead as well: they are given up, too.
    const { connections } = proxy.stats;
    await until(() => proxy.stats.connections >= connections + 2 * processes.length, PATIENCE);
    proxy.revive();
    const revivedAt = sharedMicros();
    await until(() => processes.every((one) => backAt(one, revivedAt) < Infinity), PATIENCE);
    note({
      backMs: processes.map((one) => Math.round((backAt(one, revivedAt) - revivedAt) / 1000)),
    });
    expectAllAnswered(await fleet.close());
  });

  it('are a matter of the user where the client is', async () => {
    const client = new Redis(proxy.url, { commandTimeout: 100 });
    const limiter = createRateLimiter({
      policies: { p: { rate: 5 } },
      store: { type: 'redis', client },
    });
    await limiter.ready();
    const { connections } = proxy.stats;
    const states: string[] = [];
    limiter.on('store', ({ state }) => states.push(state));
    proxy.goDead();
    proxy.revive();
    await until(async () => {
      await limiter.tryAcquire({ policy: 'p', key: 'k' });
      return states.includes('down');
    }, PATIENCE);
    expect(proxy.stats.connections).toBe(connections);
    expect(limiter.stats().store).toMatchObject({ strayReplies: 0, silences: 0 });
    client.disconnect();
    await limiter.close();
  });

  it('that wait for news of the configuration are found by asking for a sign of life', async () => {
    const client = new Redis(server.adminUrl);
    const listener = new Redis(proxy.url, { retryStrategy: () => 20 });
    const clock = new SystemClock();
    const store = new RedisConfig({ client: listener, prefix: 'weir' }, clock);
    let hints = 0;
    const stop = await store.subscribe(() => hints++);
    await until(() => hints === 1, PATIENCE);
    proxy.goDead();
    proxy.revive();
    // After each subscription something may have been missed.
    await until(() => hints === 2, PATIENCE);
    const writer = new RedisConfig({ client, prefix: 'weir' }, clock);
    await writer.write({ id: 'x' } as never, 0);
    await until(() => hints === 3, PATIENCE);
    stop();
    await Promise.all([store.close(), writer.close()]);
    for (const one of [client, listener]) one.disconnect();
  });

  it('that answers of the shared cache come by are given up as well', async () => {
    const main = new Redis(proxy.url);
    const client = connectionBeside(main);
    const cache = new RedisSharedCache(
      { client, prefix: 'weir', isOwned: true },
      new SystemClock(),
    );
    await until(() => client.status === 'ready', PATIENCE);
    await cache.set('k', seal({ v: 1, t: 0, kind: 'json', body: 'lamp' })!, 60_000);
    await until(() => cache.stats().stored === 1);
    proxy.goDead();
    proxy.revive();
    await expect(cache.get('k', 50)).rejects.toMatchObject({ code: 'STORE_TIMEOUT' });
    await until(async () => (await cache.get('k', 50))?.body === 'lamp', PATIENCE);
    cache.close();
    main.disconnect();
  });

  it('that say who probes leave it to each process, and are given up as well', async () => {
    const admin = new Redis(server.adminUrl);
    const clock = new SystemClock();
    // As the module has it: the lease goes by the connection of the cache, which looks after it.
    const { client } = connectRedis({ url: proxy.url });
    const cache = new RedisSharedCache({ client, prefix: 'weir', isOwned: true }, clock);
    const lease = new RedisProbeLease({ client, prefix: 'weir' }, clock);
    const other = new RedisProbeLease({ client: admin, prefix: 'weir', timeoutMs: 60_000 }, clock);
    await until(() => admin.status === 'ready', PATIENCE);
    expect(await other.tryHold('db', 600_000)).toBe(true);
    await until(async () => !(await lease.tryHold('db', 1000)), PATIENCE);
    proxy.goDead();
    proxy.revive();
    expect(await lease.tryHold('db', 1000)).toBe(true);
    lease.release('db');
    await until(async () => !(await lease.tryHold('db', 1000)), PATIENCE);
    // A process that probed meanwhile has not taken the right from its owner.
    expect(await admin.exists('weir:probing:db')).toBe(1);
    other.release('db');
    await until(() => lease.tryHold('db', 600_000), PATIENCE);
    await until(async () => !(await other.tryHold('db', 1000)), PATIENCE);
    cache.close();
    admin.disconnect();
  });

  it('that bring orders are given up as well, and an order is not lost', async () => {
    const limiter = createRateLimiter({
      policies: { p: { rate: 5 } },
      store: { type: 'redis', url: proxy.url },
    });
    await limiter.ready();
    const orders = new RedisOrders({ ...limiter.redis!, timeoutMs: 100 }, new SystemClock());
    const id = await until(() => orders.put({ kind: 'warm', by: 'ann' }), PATIENCE);
    proxy.goDead();
    proxy.revive();
    const isOurs = (node: string) => orders.claim(id, 'shop', node, 600_000);
    await expect(isOurs('a')).rejects.toMatchObject({ code: 'STORE_TIMEOUT' });
    await until(() => isOurs('a'), PATIENCE);
    // A process that asks again because the answer was lost still has it, and nobody else has.
    proxy.holdReplies();
    await expect(isOurs('a')).rejects.toMatchObject({ code: 'STORE_TIMEOUT' });
    proxy.drop();
    proxy.releaseReplies();
    await until(() => isOurs('a'), PATIENCE);
    expect(await until(async () => [await isOurs('b')], PATIENCE)).toEqual([false]);
    expect((await orders.read()).orders).toMatchObject([{ id, by: 'ann' }]);
    await limiter.close();
  });
});
