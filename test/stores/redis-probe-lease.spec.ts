import { Redis } from 'ioredis';
import { RedisProbeLease } from '../../lib/stores/redis/redis-probe-lease.js';
import { wireOf } from '../../lib/stores/redis/wire.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  withRedis,
  type RedisProcess,
} from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';

describe('the right to probe, in Redis', () => {
  let server: RedisProcess;
  const clients: Redis[] = [];

  async function node(url = server.url, clock = new ManualClock()): Promise<RedisProbeLease> {
    const client = new Redis(url, {
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      disconnectTimeout: 10,
    });
    client.on('error', () => undefined);
    clients.push(client);
    await until(() => client.status === 'ready', { what: 'the connection' });
    return new RedisProbeLease({ client, prefix: 'weir' }, clock);
  }

  beforeEach(async () => {
    server = await startRedis();
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await stopAll();
  });

  it('is one node’s at a time, for each resource by itself', async () => {
    const [a, b] = [await node(), await node()];
    expect(await a.tryHold('db', 60_000)).toBe(true);
    expect(await b.tryHold('db', 60_000)).toBe(false);
    expect(await b.tryHold('cart', 60_000)).toBe(true);
  });

  it('is the same node’s still when it asks again, for a new term', async () => {
    const [a, b] = [await node(), await node()];
    expect(await a.tryHold('db', 10_000)).toBe(true);
    expect(await a.tryHold('db', 60_000)).toBe(true);
    expect(await b.tryHold('db', 60_000)).toBe(false);
    await withRedis(server.port, async (client) => {
      expect(await client.pttl('weir:probing:db')).toBeGreaterThan(10_000);
    });
  });

  it('is not taken from the answer to another call', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const [a, b] = [await node(), await node(proxy.url)];
    await a.tryHold('db', 60_000);
    expect(await b.tryHold('cart', 60_000)).toBe(true);
    proxy.doubleNextReply();
    await Promise.all([b.tryHold('cart', 60_000), b.tryHold('db', 60_000)]);
    expect(wireOf(clients[1]!).strayReplies).toBe(1);
  });

  it('is given up by its owner only', async () => {
    const [a, b] = [await node(), await node()];
    await a.tryHold('db', 60_000);
    b.release('db');
    // The next command of the same connection is answered after it.
    expect(await b.tryHold('db', 60_000)).toBe(false);
    a.release('db');
    await until(() => b.tryHold('db', 60_000), { what: 'the release' });
    a.release('db');
    expect(await a.tryHold('db', 60_000)).toBe(false);
  });

  it('ends with its time, though its owner is gone', async () => {
    const [a, b] = [await node(), await node()];
    await a.tryHold('db', 50);
    await until(() => b.tryHold('db', 60_000), { what: 'the end of the lease' });
    await withRedis(server.port, async (client) => {
      expect(await client.pttl('weir:probing:db')).toBeGreaterThan(0);
    });
  });

  it('is everybody’s while the store is away', async () => {
    const a = await node();
    await server.kill();
    await until(() => clients[0]!.status !== 'ready', { what: 'the loss of the connection' });
    expect(a.tryHold('db', 1000)).toBe(true);
    expect(() => a.release('db')).not.toThrow();
  });

  it('is everybody’s while the store does not answer', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const clock = new ManualClock();
    const a = await node(proxy.url, clock);
    proxy.holdReplies();
    const held = a.tryHold('db', 1000);
    await clock.advanceAsync(60);
    expect(await held).toBe(true);
  });
});
