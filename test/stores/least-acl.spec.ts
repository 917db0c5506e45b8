import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createRateLimiter } from 'nestjs-weir';
import { SystemClock } from '../../lib/common/clock.js';
import { VersionedConfig } from '../../lib/config/versioned-config.js';
import { seal } from '../../lib/stores/envelope.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { RedisProbeLease } from '../../lib/stores/redis/redis-probe-lease.js';
import { RedisSharedCache } from '../../lib/stores/redis/redis-shared-cache.js';
import { root } from '../setup/ensure-built.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { documentedCommands, leastUser } from '../support/least-acl.js';

describe('the rights that the docs ask Redis for', () => {
  let server: RedisProcess;

  beforeAll(async () => {
    server = await startRedis({ config: { user: leastUser('~weir:* &weir:*') } });
  });

  afterAll(stopAll);

  it('name every command of every script', () => {
    const lua = join(root, 'lua');
    const known = new Set(documentedCommands());
    const missing = readdirSync(lua).flatMap((file) => {
      const text = readFileSync(join(lua, file), 'utf8');
      const calls = text.matchAll(/redis(?:_call|\.p?call)\(\s*'(\w+)'/g);
      return [...calls]
        .map(([, command]) => command!.toLowerCase())
        .filter((one) => !known.has(one));
    });
    expect(missing).toEqual([]);
  });

  it('are enough for everything, on the keys of the prefix alone', async () => {
    const admin = new Redis(server.adminUrl);
    await admin.acl('LOG', 'RESET');
    const clock = new SystemClock();
    const limiter = createRateLimiter({
      policies: {
        bucket: { rate: 1000, sync: 'exact' },
        leased: { rate: 10_000, sync: 'leased' },
        shaper: { rate: 1000, algorithm: 'leaky-bucket', mode: 'shaper' },
        window: { rate: 1000, algorithm: 'sliding-window' },
      },
      quota: { cluster: { capacity: 1000 }, apps: { shop: { guaranteed: 500 } } },
      store: { type: 'redis', url: server.url, decisionTimeout: '5s' },
    });
    await limiter.ready();
    for (const policy of ['bucket', 'leased', 'shaper', 'window']) {
      for (let turn = 0; turn < 20; turn++) await limiter.tryAcquire({ policy, key: 'k' });
      expect(await limiter.tryAcquire({ policy, key: 'other' })).toMatchObject({ source: 'store' });
      await limiter.peek({ policy, key: 'k' });
      await limiter.refund({ policy, key: 'k' });
      await limiter.reset({ policy, key: 'k' });
    }
    for (let turn = 0; turn < 20; turn++) await limiter.tryAcquire({ app: 'shop', method: 'GET' });
    expect(await limiter.quota.status()).toMatchObject({ capacity: 1000 });

    const client = new Redis(server.url);
    const store = new RedisConfig({ client, prefix: 'weir', timeoutMs: 5000 }, clock);
    const config = new VersionedConfig({
      ...{ store, nodeId: 'a', clock, code: { document: { policies: { api: { rate: 1 } } } } },
      report: { info: () => {}, warn: () => {}, error: () => {} },
    });
    await config.start();
    await until(async () => {
      const heard = (await admin.pubsub('NUMSUB', 'weir:{config}:revision')) as [string, number];
      return heard[1] === 1;
    });
    await config.update({ policies: { api: { rate: 2 } } });
    await config.rollback(1);
    await config.history();
    expect(await config.nodes()).toHaveLength(1);
    await config.close();

    const cache = new RedisSharedCache({ client, prefix: 'weir', isOwned: false }, clock);
    await cache.set('k', seal({ v: 1, t: Date.now(), kind: 'json', body: 1 })!, 60_000);
    await until(async () => (await cache.get('k', 5000)) !== undefined);
    const lease = new RedisProbeLease({ client, prefix: 'weir', timeoutMs: 5000 }, clock);
    expect(await lease.tryHold('db', 1000)).toBe(true);
    lease.release('db');
    await limiter.close();
    client.disconnect();
    expect(await admin.acl('LOG')).toEqual([]);
    admin.disconnect();
  });
});
