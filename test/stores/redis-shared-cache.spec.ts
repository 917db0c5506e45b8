import { Cluster, Redis } from 'ioredis';
import { type FallbackLevels } from '../../lib/degradation/core/contract.js';
import { DegradationCore } from '../../lib/degradation/core/degradation-core.js';
import { MOST_BYTES, seal } from '../../lib/stores/envelope.js';
import { connectionBeside, RedisSharedCache } from '../../lib/stores/redis/redis-shared-cache.js';
import {
  startProxy,
  startRedis,
  startRedisCluster,
  stopAll,
  until,
  withRedis,
  type RedisProcess,
} from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';

const LEVELS: FallbackLevels = {};
const BODY = { name: 'lamp' };

/** A node with its level 1 in Redis, on a clock of its own. */
class Node {
  readonly clock = new ManualClock(1_000_000_000, Date.now() - 1_000_000);
  readonly client: Redis;
  readonly shared: RedisSharedCache;
  readonly core: DegradationCore;

  constructor(url: string) {
    this.client = new Redis(url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => 20,
      disconnectTimeout: 10,
    });
    this.client.on('error', () => undefined);
    const settings = { client: this.client, prefix: 'weir', isOwned: true };
    this.shared = new RedisSharedCache(settings, this.clock);
    this.core = new DegradationCore({ clock: this.clock, nodeId: 'a', shared: this.shared });
  }

  async ready(): Promise<this> {
    await until(() => this.client.status === 'ready', { what: 'the connection' });
    return this;
  }

  async stored(key: string, body: unknown = BODY): Promise<void> {
    const before = this.shared.stats().stored;
    expect(this.core.caches.store(LEVELS, key, body)).toBe(true);
    await until(() => this.shared.stats().stored > before, { what: 'the write' });
  }

  read(key: string, levels = LEVELS): Promise<unknown> {
    return this.core.caches.readShared(levels, key, 50).then((found) => found?.value);
  }
}

describe('the shared cache in Redis', () => {
  let server: RedisProcess;
  const nodes: Node[] = [];

  const start = (url = server.url): Node => {
    const made = new Node(url);
    nodes.push(made);
    return made;
  };
  const node = (url?: string): Promise<Node> => start(url).ready();

  beforeAll(async () => {
    server = await startRedis();
  });

  beforeEach(async () => {
    if (!server.alive) await server.restart();
    await withRedis(server.port, (client) => client.flushall());
  });

  afterEach(() => {
    for (const { core } of nodes.splice(0)) core.close();
  });

  afterAll(() => stopAll());

  it('gives one node what another has stored, for as long as it may', async () => {
    const [a, b] = [await node(), await node()];
    await a.stored('k');
    expect(await b.read('k')).toEqual(BODY);
    expect(await b.read('other')).toBeUndefined();
    expect(b.shared.stats()).toMatchObject({ hits: 1, misses: 1 });
    await withRedis(server.port, async (client) => {
      expect(await client.keys('*')).toEqual(['weir:answer:k']);
      const ttlMs = await client.pttl('weir:answer:k');
      expect(ttlMs).toBeGreaterThan(0);
      expect(ttlMs).toBeLessThanOrEqual(30_000);
    });
  });

  it('waits for its first connection, to read and to write, as it has nothing else to answer with', async () => {
    const [a, b] = [bound(start()), bound(start())];
    expect(a.client.status).toBe('connecting');
    await a.stored('k');
    expect(await b.read('k')).toEqual(BODY);
    expect([a.shared.stats().dropped, b.core.caches.stats().shared?.failed]).toEqual([0, 0]);
  });

  it('does not wait where nobody listens', async () => {
    await server.kill();
    const { core, shared, read } = bound(start());
    expect(core.caches.store(LEVELS, 'k', BODY)).toBe(true);
    expect(await read('k')).toBeUndefined();
    await until(() => shared.stats().failedWrites === 1, { what: 'the end of the write' });
    expect(core.caches.stats().shared?.failed).toBe(1);
  });

  it('takes a value of 1 MiB and not one byte more (V-E22)', async () => {
    const { shared } = await node();
    const frame = seal({ v: 1, t: 0, kind: 'json', body: '' })!.bytes;
    const sealed = (bytes: number) =>
      seal({ v: 1, t: 0, kind: 'json', body: 'x'.repeat(bytes - frame) })!;
    expect(sealed(MOST_BYTES).bytes).toBe(MOST_BYTES);
    expect(await shared.set('fits', sealed(MOST_BYTES), 60_000)).toBe(true);
    expect(shared.set('not', sealed(MOST_BYTES + 1), 60_000)).toBe(false);
    expect(shared.stats().stored).toBe(1);
    expect((await shared.get('fits', 5000))?.kind).toBe('json');
    expect(shared.stats()).toMatchObject({ tooBig: 1, hits: 1 });
  });

  it.each<[string, (client: Redis, key: string) => Promise<unknown>]>([
    ['a text', (client, key) => client.set(key, 'hello')],
    ['half an envelope', (client, key) => client.set(key, '{"v":1,"t":1,"kind":"json","bo')],
    ['bytes', (client, key) => client.set(key, Buffer.from([0xff, 0xfe, 0x00]))],
    ['JSON of another form', (client, key) => client.set(key, '{"name":"lamp"}')],
    ['a list', (client, key) => client.rpush(key, 'a')],
    ['a hash', (client, key) => client.hset(key, 'v', '1')],
    ['a giant', (client, key) => client.setrange(key, 5_000_000, 'x')],
  ])('takes %s that somebody put there for a miss, and counts it', async (_name, poison) => {
    const { core, shared, read } = bound(await node());
    await withRedis(server.port, (client) => poison(client, 'weir:answer:k'));
    for (let i = 0; i < 5; i++) expect(await read('k')).toBeUndefined();
    expect(shared.stats()).toMatchObject({ unreadable: 5, hits: 0 });
    // It is not the store's fault.
    expect(core.caches.sharedIsAway).toBe(false);
  });

  it('does not give an answer of an older schema or another sort', async () => {
    const { core, stored, read } = bound(await node());
    await stored('k');
    expect(await read('k', { schemaVersion: 2 })).toBeUndefined();
    expect(await read('k', { kind: 'rpc' })).toBeUndefined();
    expect(core.caches.stats().rejected).toMatchObject({ version: 1, kind: 1 });
  });

  it('that is killed is a miss at once, drops writes, and is back when Redis is', async () => {
    const { core, clock, shared, client, stored, read } = bound(await node());
    await stored('k');
    await server.kill();
    await until(() => client.status !== 'ready', { what: 'the loss of the connection' });
    for (let i = 0; i < 5; i++) {
      expect(await read('k')).toBeUndefined();
      clock.advance(1);
    }
    expect(core.caches.sharedIsAway).toBe(true);
    expect(core.caches.store(LEVELS, 'other', BODY)).toBe(true);
    expect(shared.stats().dropped).toBe(1);
    expect(core.caches.readProcess(LEVELS, 'k')?.value).toEqual(BODY);
    await server.restart();
    await until(() => client.status === 'ready', { what: 'the new connection' });
    clock.advance(10_000);
    await stored('k');
    expect(await read('k')).toEqual(BODY);
    expect(core.caches.sharedIsAway).toBe(false);
  });

  it('that is slow is a miss within 50 ms, and soon not asked at all', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const { core, clock, stored, read } = bound(await node(proxy.url));
    await stored('k');
    proxy.holdReplies();
    for (let i = 0; i < 3; i++) {
      let found: unknown = 'nothing yet';
      const asked = read(`k${i}`).then((value) => (found = value));
      await clock.advanceAsync(49);
      expect(found).toBe('nothing yet');
      await clock.advanceAsync(2);
      await asked;
      expect(found).toBeUndefined();
    }
    expect(core.caches.sharedIsAway).toBe(true);
    const before = proxy.stats.bytesToServer;
    for (let i = 0; i < 100; i++) expect(await read(`more${i}`)).toBeUndefined();
    expect(proxy.stats.bytesToServer).toBe(before);
    proxy.releaseReplies();
    clock.advance(10_000);
    await until(async () => (await read('k')) !== undefined, { what: 'level 1 to be back' });
    await proxy.close();
  });

  it('neither waits for writes nor lets them pile up', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const { core, shared } = await node(proxy.url);
    proxy.holdReplies();
    for (let i = 0; i < 150; i++) expect(core.caches.store(LEVELS, `k${i}`, BODY)).toBe(true);
    expect(shared.stats()).toMatchObject({ stored: 0, dropped: 50 });
    proxy.releaseReplies();
    await until(() => shared.stats().stored === 100, { what: 'the writes that were sent' });
    await proxy.close();
  });

  it('counts writes that Redis refuses', async () => {
    const { core, shared } = await node();
    await withRedis(server.port, (client) => client.config('SET', 'maxmemory', '1'));
    expect(core.caches.store(LEVELS, 'k', BODY)).toBe(true);
    await until(() => shared.stats().failedWrites === 1, { what: 'the refusal' });
    await withRedis(server.port, (client) => client.config('SET', 'maxmemory', '0'));
  });

  it('may have a connection of its own beside that of a client, whatever its options', async () => {
    const client = new Redis(server.url, { lazyConnect: true, keyPrefix: 'app:' });
    client.on('error', () => undefined);
    const beside = connectionBeside(client) as Redis;
    await until(() => beside.status === 'ready', { what: 'the connection beside it' });
    expect(client.status).toBe('wait');
    expect(beside.options).toMatchObject({ enableOfflineQueue: false, maxRetriesPerRequest: 0 });
    const cache = new RedisSharedCache(
      { client: beside, prefix: 'weir', isOwned: true },
      new ManualClock(),
    );
    expect(await cache.set('k', seal({ v: 1, t: 0, kind: 'json', body: 1 })!, 1000)).toBe(true);
    await withRedis(server.port, async (plain) => {
      expect(await plain.keys('*')).toEqual(['app:weir:answer:k']);
    });
    cache.close();
    await until(() => beside.status === 'end', { what: 'the end of the connection' });
    client.disconnect();
  });

  it('works on Redis Cluster', async () => {
    const cluster = await startRedisCluster();
    const client = new Cluster([...cluster.nodes]);
    client.on('error', () => undefined);
    const beside = connectionBeside(client);
    await until(() => beside.status === 'ready', { what: 'the cluster', timeoutMs: 15_000 });
    const settings = { client: beside, prefix: 'weir', isOwned: true };
    const cache = new RedisSharedCache(settings, new ManualClock());
    const keys = Array.from({ length: 20 }, (_, i) => `key {${i}}`);
    const put = (key: string) =>
      cache.set(key, seal({ v: 1, t: 0, kind: 'json', body: key })!, 60_000);
    await until(async () => {
      for (const key of keys) await put(key);
      const found = await Promise.all(keys.map((key) => cache.get(key, 1000)));
      return found.every((envelope, i) => envelope?.body === keys[i]);
    });
    cache.close();
    client.disconnect();
  });
});

function bound(made: Node): Node {
  return Object.assign(made, { read: made.read.bind(made), stored: made.stored.bind(made) });
}
