import { Redis } from 'ioredis';
import { createRateLimiter, type RateLimiter } from 'nestjs-weir';
import { SystemClock } from '../../lib/common/clock.js';
import { connectionBeside, RedisConfig, RedisSharedCache, seal } from '../../lib/stores/index.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  type RedisProcess,
  type TcpProxy,
} from '../support/index.js';
import { note } from './note.js';

/** What is waited for takes less than two seconds; a busy machine may take its time. */
const PATIENCE = { timeoutMs: 30_000 };

/** A limiter with everything that it may ask Redis for, under light load all the time. */
class Node {
  readonly limiter: RateLimiter;
  readonly states: string[] = [];
  policySource = '';
  quotaSource = '';
  backAtMs = 0;
  private readonly load: NodeJS.Timeout;

  constructor(url: string) {
    this.limiter = createRateLimiter({
      policies: { p: { rate: 1000, sync: 'exact' } },
      quota: { apps: { shop: { guaranteed: 1000, burst: 1000 } } },
      store: { type: 'redis', url, decisionTimeout: '200ms' },
    });
    this.limiter.on('store', ({ state }) => this.states.push(state));
    this.load = setInterval(() => void this.ask(), 20);
  }

  get isAway(): boolean {
    const { quota } = this.limiter.stats();
    return this.states.at(-1) === 'down' && quota?.apps['shop']?.mode === 'offline';
  }

  get isBack(): boolean {
    return this.policySource === 'store' && this.quotaSource !== 'fallback' && !this.isAway;
  }

  async close(): Promise<void> {
    clearInterval(this.load);
    await this.limiter.close();
  }

  private async ask(): Promise<void> {
    const [byPolicy, byQuota] = await Promise.all([
      this.limiter.tryAcquire({ policy: 'p', key: 'k' }),
      this.limiter.tryAcquire({ app: 'shop' }),
    ]);
    this.policySource = byPolicy.source;
    this.quotaSource = byQuota.source;
    if (this.isBack) this.backAtMs ||= performance.now();
    else this.backAtMs = 0;
  }
}

describe('connections whose other side is gone without a word', () => {
  let server: RedisProcess;
  let proxy: TcpProxy;

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startProxy({ targetPort: server.port });
  });

  afterEach(() => stopAll());

  it('are given up, and policies and quotas are back when new ones work', async () => {
    const nodes = [1, 2, 3].map(() => new Node(proxy.url));
    await until(() => nodes.every((node) => node.isBack), PATIENCE);
    proxy.goDead();
    await until(() => nodes.every((node) => node.isAway), PATIENCE);
    // New connections are made and are dead as well: they are given up, too.
    const { connections } = proxy.stats;
    await until(() => proxy.stats.connections >= connections + 2 * nodes.length, PATIENCE);
    proxy.revive();
    const revivedAtMs = performance.now();
    await until(() => nodes.every((node) => node.isBack), PATIENCE);
    note({ backMs: nodes.map(({ backAtMs }) => Math.round(backAtMs - revivedAtMs)) });
    for (const { limiter } of nodes) {
      expect(limiter.stats().store).toMatchObject({ strayReplies: 0 });
      expect(limiter.stats().store!.silences).toBeGreaterThanOrEqual(1);
    }
    await Promise.all(nodes.map((node) => node.close()));
  }, 60_000);

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
    expect(limiter.stats().store).toEqual({ strayReplies: 0, silences: 0 });
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
  }, 60_000);

  it('that answers of the shared cache come by are given up as well', async () => {
    const main = new Redis(proxy.url);
    const client = connectionBeside(main);
    const cache = new RedisSharedCache(
      { client, prefix: 'weir', isOwned: true },
      new SystemClock(),
    );
    await until(() => client.status === 'ready', PATIENCE);
    cache.set('k', seal({ v: 1, t: 0, kind: 'json', body: 'lamp' })!, 60_000);
    await until(() => cache.stats().stored === 1);
    proxy.goDead();
    proxy.revive();
    await expect(cache.get('k', 50)).rejects.toMatchObject({ code: 'STORE_TIMEOUT' });
    await until(async () => (await cache.get('k', 50))?.body === 'lamp', PATIENCE);
    cache.close();
    main.disconnect();
  }, 60_000);
});
