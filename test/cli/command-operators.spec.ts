import { Controller, Get, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Degrade,
  RateLimiter,
  RateLimitConfig,
  RateLimitModule,
  type LimitInput,
} from 'nestjs-weir';
import { type VersionedConfig } from '../../lib/config/versioned-config.js';
import { RedisOrders } from '../../lib/stores/redis/redis-orders.js';
import { SystemClock } from '../../lib/common/clock.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { until } from '../support/until.js';
import { commandStand } from './weir-command.js';

const stand = commandStand();
const { weir, json } = stand;

/** A process with a page whose answers can be warmed, and what it has loaded. */
async function startShop(nodeId: string, loaded: string[]): Promise<INestApplication> {
  @Controller()
  class PageController {
    @Get('page')
    @Degrade({
      resource: 'page',
      shared: true,
      level4: { from: 'default' },
      warm: () =>
        ['1', '2', '3'].map((id) => ({
          query: { id },
          load: () => {
            loaded.push(`${nodeId} ${id}`);
            return { id };
          },
        })),
    })
    page() {
      return { from: 'page' };
    }
  }
  const policies = {
    api: { rate: 10, key: 'user' as const, tiers: { vip: 100 } },
    ip: { rate: '5/min' as const },
    window: {
      algorithm: 'sliding-window' as const,
      rate: '3/min' as const,
      key: 'global' as const,
    },
    pair: { rate: '4/h' as const, key: ['user' as const, 'route' as const] },
    here: { rate: 4, scope: 'node' as const },
    hot: { rate: 100_000, sync: 'leased' as const },
  };
  @Module({
    imports: [
      RateLimitModule.forRoot({
        ...{ policies, nodeId, service: 'shop' },
        store: { type: 'redis', url: stand.redis.url, decisionTimeout: '5s' },
      }),
    ],
    controllers: [PageController],
  })
  class ShopModule {}
  const app = await NestFactory.create(ShopModule, { logger: false });
  await app.listen(0);
  return app;
}

describe('operators', () => {
  const apps: INestApplication[] = [];
  const loaded: string[] = [];

  beforeEach(async () => {
    loaded.length = 0;
    for (const nodeId of ['a', 'b']) apps.push(await startShop(nodeId, loaded));
  });

  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  const limiter = () => apps[0]!.get(RateLimiter);
  const answerOf = async (app: INestApplication): Promise<unknown> =>
    (await fetch(`${await app.getUrl()}/page`)).json();

  it('look at a key and have it start anew, in every tier', async () => {
    for (let i = 0; i < 10; i++) await limiter().tryAcquire({ policy: 'api', key: 'user:ann' });
    await limiter().tryAcquire({ policy: 'api', key: 'user:ann', tier: 'vip' });
    const { tiers } = await json<{ tiers: Record<string, unknown>[] }>('key', 'get', 'api', 'ann');
    expect(tiers.map(({ tier, inUse, limit }) => [tier, inUse, limit])).toEqual([
      ['default', true, 10],
      ['vip', true, 100],
    ]);
    expect((await weir('key', 'get', 'api', 'ann')).out).toMatch(
      /^policy api, key user:ann\ntier +in use +of +left/,
    );
    expect((await weir('key', 'reset', 'api', 'ann')).out).toContain(
      'policy api, key user:ann: starts anew\n',
    );
    expect(await json('key', 'get', 'api', 'ann')).toMatchObject({
      tiers: [
        { tier: 'default', inUse: false, allowed: true, remaining: 10 },
        { tier: 'vip', inUse: false, remaining: 100 },
      ],
    });
  });

  it('look at a key by the limits in force, before anybody has asked by them', async () => {
    for (let i = 0; i < 5; i++) await limiter().tryAcquire({ policy: 'ip', key: 'changing' });
    const before = await json<{ tiers: object[] }>('key', 'get', 'ip', '--raw', 'changing');
    expect(before.tiers).toMatchObject([{ limit: 5, remaining: 0 }]);
    await weir('config', 'set', 'policies.ip.rate', '100/min');
    const { tiers } = await json<{ tiers: { resetMs: number; retryAfterMs: number }[] }>(
      ...['key', 'get', 'ip', '--raw', 'changing'],
    );
    // One of a hundred in 0.6 s; of five it was twelve.
    expect(tiers[0]!.retryAfterMs).toBeLessThanOrEqual(600);
    await weir('config', 'set', 'policies.ip.rate', '5/min');
  });

  it('look at windows, addresses of IPv6, lists, long keys, and keys as they are', async () => {
    const take = (policy: string, key: string) => limiter().tryAcquire({ policy, key });
    const left = async (...args: string[]) =>
      (await json<{ tiers: { remaining: number }[] }>('key', 'get', ...args)).tiers[0]!.remaining;
    for (let i = 0; i < 2; i++) await take('window', 'global');
    expect(await left('window', 'global')).toBe(1);
    await take('ip', '2001:db8:0:0/64');
    const { key } = await json<{ key: string }>('key', 'get', 'ip', '2001:db8::7');
    await take('ip', key);
    expect(await left('ip', '2001:db8::9')).toBe(4);
    // By the part of an address that the module goes by.
    await take('ip', '2001:db8:7::/48');
    expect(await left('ip', '2001:db8:7:8::9')).toBe(5);
    expect(await left('ip', '2001:db8:7:8::9', '--ipv6-prefix', '48')).toBe(4);
    await take('pair', '8:user:ann;5:C.all;');
    expect(await left('pair', 'ann', 'C.all')).toBe(3);
    const long = 'x'.repeat(500);
    await take('ip', long);
    expect(await left('ip', '--raw', long)).toBe(4);
  });

  it('look at limits that came as values, and have them start anew', async () => {
    const take = (limit: LimitInput) =>
      limiter().tryAcquire({ policy: 'api', key: 'user:eve', limit });
    for (let i = 0; i < 3; i++) await take({ rate: '20/h', burst: 5 });
    await take({ rate: 30, period: '1h' });
    const asked = ['key', 'get', 'api', 'eve', '--limit', '20/h:5', '--limit', '30/h'];
    const { tiers } = await json<{ tiers: Record<string, unknown>[] }>(...asked);
    expect(tiers.map(({ tier, inUse, remaining }) => [tier, inUse, remaining])).toEqual([
      ['default', false, 10],
      ['vip', false, 100],
      ['20/h:5', true, 2],
      ['30/h', true, 29],
    ]);
    await weir('key', 'reset', 'api', 'eve', '--limit', '20/h:5');
    expect(await json(...asked)).toMatchObject({
      tiers: [{}, {}, { inUse: false, remaining: 5 }, { inUse: true, remaining: 29 }],
    });
  });

  it('see how many tokens of a key processes hold', async () => {
    const leased = await until(async () => {
      for (let i = 0; i < 50; i++) await limiter().tryAcquire({ policy: 'hot', key: 'k' });
      const { tiers } = await json<{ tiers: { leased: number }[] }>('key', 'get', 'hot', 'k');
      return tiers[0]!.leased > 0 ? tiers[0]!.leased : undefined;
    });
    expect(leased).toBeLessThanOrEqual(100_000);
  });

  it.each([
    [['key', 'get', 'apo', 'x'], 1, "there is no policy 'apo'; did you mean 'api'?"],
    [
      ['key', 'get', 'api', 'x', '--prefix', 'shop'],
      1,
      "no policy 'api'; there are none under --prefix shop",
    ],
    [['key', 'get', 'ip', '::1', '--ipv6-prefix', '8'], 2, 'a whole number from 32 to 128'],
    [['key', 'get', 'here', 'x'], 1, "is of scope 'node'"],
    [['key', 'get', 'pair', 'x'], 2, "The key of policy 'pair' is 2 words; got 1."],
    [['key', 'get', 'api'], 2, 'POLICY or KEY is missing.'],
    [['key', 'get', 'api', 'x', '--limit', '5/s:all'], 2, '--limit must be RATE or RATE:BURST'],
    [['key', 'get', 'api', 'x', '--limit', '5/fortnight'], 1, 'limit.rate: expected '],
    [['degrade', 'force', 'pag'], 1, "there is no resource 'pag'; did you mean 'page'?"],
    [['degrade', 'force', 'page', '--level', '5'], 2, '--level must be a whole number from 1 to 4'],
    [['degrade', 'force', 'page', '--until', '2020-01-01'], 2, '--until must be a time to come'],
    [['warm', 'pag'], 1, "there is no resource 'pag'; did you mean 'page'?"],
    [['warm', '--at', '2020-01-01'], 1, 'is past: the clock of Redis says'],
    [['warm', '--timeout', '0'], 2, '--timeout must be a whole number from 1'],
  ])('are told what is wrong with %j', async (args, exit, message) => {
    const { code, err } = await weir(...args);
    expect([code, err]).toEqual([exit, expect.stringContaining(message)]);
  });

  it('hold a page for the whole fleet, see it in the status, and let it go', async () => {
    expect(await answerOf(apps[1]!)).toEqual({ from: 'page' });
    const forced = await weir(
      'degrade',
      'force',
      'page',
      '--level',
      '4',
      '--until',
      '2100-01-01T00:00:00Z',
    );
    expect([forced.code, forced.err]).toEqual([0, '']);
    await until(async () => JSON.stringify(await answerOf(apps[1]!)).includes('default'));
    const { out } = await weir('status');
    expect(out).toMatch(/page +forced +4 +2100-01-01T00:00:00Z\n/);
    expect((await weir('degrade', 'observe', 'page')).code).toBe(0);
    expect(await json('config', 'staged')).toEqual([]);
    expect(await json('status')).toMatchObject({ held: [{ resource: 'page', mode: 'observe' }] });
    expect((await weir('degrade', 'release', 'page')).code).toBe(0);
    expect(await json('status')).toMatchObject({ held: [] });
  });

  it('have one process warm the answers, and see its report', async () => {
    const { code, out, err } = await weir('warm', 'page', '--by', 'ann');
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^warm order 1\n[^]*shop +page +3 +0 +[ab]\n$/);
    expect(loaded).toHaveLength(3);
    expect(new Set(loaded.map((one) => one[0])).size).toBe(1);
    expect((await weir('status')).out).toMatch(
      /warm order 1 by ann at .*: page\n[^]*shop +page +3 +0/,
    );
    // A busy machine may be late even for that, and is told so.
    await until(async () => {
      const later = new Date(Date.now() + 300).toISOString();
      expect((await weir('warm', '--at', later)).out).toContain('warm order 2 for ');
      return true;
    });
    await until(() => loaded.length === 6);
  });

  it('take back an order whose time has not come', async () => {
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const [, id] = /warm order (\d+)/.exec((await weir('warm', '--at', later)).out)!;
    expect(await weir('warm', '--cancel', id!)).toMatchObject({
      ...{ code: 0, out: `warm order ${id} is taken back\n`, err: '' },
    });
    expect((await weir('status')).out).not.toContain(`warm order ${id} `);
    expect((await weir('warm', '--cancel', id!)).err).toBe(
      `there is no warm order ${id}; weir status shows those of the last hour\n`,
    );
    const [, done] = /warm order (\d+)/.exec((await weir('warm', 'page')).out)!;
    expect((await weir('warm', '--cancel', done!)).err).toBe(
      `warm order ${done} has begun: weir status shows its report\n`,
    );
    const both = await weir('warm', 'page', '--cancel', '1');
    expect([both.code, both.err]).toEqual([
      2,
      expect.stringContaining('--cancel takes neither RESOURCE nor --at'),
    ]);
    expect(await json('warm', '--at', later)).toMatchObject({ services: ['shop'] });
  });

  it('are told when nobody reports in time', async () => {
    for (const app of apps) {
      const config: unknown = app.get(RateLimitConfig);
      (config as VersionedConfig).whenOrdered(() => {});
    }
    const { code, err } = await weir('warm', '--timeout', '1');
    expect([code, err]).toEqual([
      1,
      'no report of shop within 1 s: no process has begun; weir status shows more\n',
    ]);
  });
});

it('has nobody to warm anything without a process', async () => {
  expect((await weir('warm')).err).toContain('no running process has anything to warm');
});

it('gives an order to one process at a time, to another if that is gone, and to nobody once it is done', async () => {
  const { client } = connectRedis({ url: stand.redis.url });
  await until(() => client.status === 'ready');
  const orders = new RedisOrders({ client, prefix: 'weir', timeoutMs: 5000 }, new SystemClock());
  const id = (await orders.put({ kind: 'warm', by: 'ann' }))!;
  expect(await orders.claim(id, 'shop', 'a', 60_000)).toBe(true);
  expect(await orders.claim(id, 'shop', 'b', 60_000)).toBe(false);
  expect(await orders.claim(id, 'mail', 'b', 60_000)).toBe(true);
  expect(await orders.claim(id, 'shop', 'a', 1)).toBe(true);
  await until(() => orders.claim(id, 'shop', 'b', 60_000));
  expect(await orders.claim(id, 'shop', 'a', 60_000, { error: 'late' })).toBe(false);
  expect(await orders.claim(id, 'shop', 'b', 60_000, { warmed: [] })).toBe(true);
  expect(await orders.claim(id, 'shop', 'b', 60_000)).toBe(false);
  expect(await orders.claim(99, 'shop', 'a', 60_000)).toBe(false);
  for (let i = 1; i < 16; i++) await orders.put({ kind: 'warm', by: 'ann' });
  expect(await orders.put({ kind: 'warm', by: 'ann' })).toBeUndefined();
  client.disconnect();
});
