import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { createRateLimiter } from 'nestjs-weir';
import { SystemClock } from '../../lib/common/clock.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { makeTempDir } from '../support/processes.js';
import { withRedis } from '../support/index.js';
import { until } from '../support/until.js';
import { acknowledge, commandStand } from './weir-command.js';

const stand = commandStand();
const { weir, json } = stand;

it('sets a field, and shows what changed', async () => {
  const first = await weir('config', 'set', '--new', 'policies.api.rate', '100/min', '--by', 'ann');
  expect(first).toEqual({
    code: 0,
    out: 'revision 1\n   path      before  after\n+  policies          {"api":{"rate":"100/min"}}\n',
    err: '',
  });
  const second = await weir('config', 'set', '--new', 'policies["a.b"].rate', '5');
  expect(second.out).toContain('+  policies["a.b"]          {"rate":5}');
  expect(await json('config', 'get')).toEqual({
    revision: 2,
    profile: 'normal',
    staged: [],
    document: { policies: { api: { rate: '100/min' }, 'a.b': { rate: 5 } } },
  });
  await weir('config', 'set', 'policies["a.b"]', 'null');
  expect(await json('config', 'get', 'policies')).toMatchObject({
    revision: 3,
    document: { api: { rate: '100/min' } },
  });
});

it('drops what updates have set, and nothing else', async () => {
  const none = await weir('config', 'unset', 'policies.api.rate');
  expect([none.code, none.err]).toEqual([
    1,
    'path: expected an updated path, got "policies.api.rate"\n',
  ]);
  await weir('config', 'set', '--new', 'policies', '{"api":{"rate":5,"burst":9},"a.b":{"rate":1}}');
  const dropped = await weir('config', 'unset', 'policies.api.burst', '--by', 'ann');
  expect(dropped).toEqual({
    code: 0,
    out: 'revision 2\n   path                before  after\n-  policies.api.burst  9\n',
    err: '',
  });
  const other = await weir('config', 'unset', 'policies.api.cost');
  expect([other.code, other.err]).toEqual([
    1,
    'path: expected an updated path, got "policies.api.cost"\n',
  ]);
  const wrong = await weir('config', 'unset', 'policies.api.rate', '--expected', '1');
  expect(wrong.err).toBe('the configuration is at revision 2, not 1; nothing was changed\n');
  expect((await weir('config', 'unset')).code).toBe(2);
  expect(await json('config', 'get', 'policies')).toMatchObject({
    revision: 2,
    document: { api: { rate: 5 }, 'a.b': { rate: 1 } },
  });
});

it('lays a whole file over what holds', async () => {
  const file = join(makeTempDir(), 'patch.yaml');
  writeFileSync(file, 'policies:\n  api: { rate: 5, burst: 9 }\n');
  expect((await weir('config', 'set', '--new', '--patch', file)).code).toBe(0);
  const { out } = await weir('config', 'get', 'policies.api');
  expect(out).toMatch(
    /^# revision 1, profile normal: update by \S+ at 20\S+Z\nrate: 5\nburst: 9\n$/,
  );
});

it('changes nothing if the document would be wrong, or another one holds', async () => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5');
  const wrong = await weir('config', 'set', 'policies.api.cost', '9');
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain(
    'policies.api.cost: expected at most 5, all that the limit ever holds (raise its burst), got 9',
  );
  const misspelt = await weir('config', 'set', 'policies.api.rat', '9');
  expect(misspelt.err).toContain("policies.api.rat: no such field; did you mean 'rate'?");
  const late = await weir('config', 'set', 'policies.api.rate', '7', '--expected', '9');
  expect([late.code, late.err]).toEqual([
    1,
    'the configuration is at revision 1, not 9; nothing was changed\n',
  ]);
  expect(await json('config', 'get')).toMatchObject({ revision: 1 });
});

it('says of a revision that changed no limit that it did not', async () => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5', '--by', 'ann');
  const { client } = connectRedis({ url: stand.redis.url });
  const store = new RedisConfig({ client, prefix: 'weir' }, new SystemClock());
  const { revision: _, atMs: __, ...draft } = (await store.read()).current!;
  const code = { other: { document: { policies: { api: { rate: 5 } } }, version: null } };
  await store.write({ ...draft, id: 'another', kind: 'code', by: 'other', code }, 1);
  await store.close();
  client.disconnect();
  const { out } = await weir('config', 'history');
  expect(out).toMatch(/2 +code +other +\S+ +no limit\n/);
});

it('lists, compares and rolls back', async () => {
  for (const rate of ['5', '6', '7']) {
    await weir('config', 'set', '--new', 'policies.api.rate', rate, '--by', 'ann');
  }
  const { out: history } = await weir('config', 'history');
  expect(history.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['revision', 'kind', 'by', 'at', 'changes'],
    ...['3', '2'].map((revision) => [
      '',
      revision,
      'update',
      'ann',
      expect.any(String) as string,
      'policies.api.rate',
    ]),
    ['', '1', 'update', 'ann', expect.any(String), 'policies'],
    [''],
  ]);
  expect((await weir('config', 'diff', '1')).out).toContain('~  policies.api.rate  5       7');
  expect((await weir('config', 'diff', '1', '2')).out).toContain('~  policies.api.rate  5       6');
  expect((await weir('config', 'diff', '3')).out).toBe('no difference\n');
  const { out } = await weir('config', 'rollback', '1', '--by', 'bob');
  expect(out).toContain('revision 4\n');
  expect(await json('config', 'get')).toMatchObject({
    document: { policies: { api: { rate: 5 } } },
  });
  expect(await json('config', 'history', '--count', '1')).toMatchObject([
    { revision: 4, kind: 'rollback', by: 'bob' },
  ]);
  expect(await weir('config', 'rollback', '99')).toMatchObject({
    code: 1,
    err: 'revision 99 is not in the history, which has 1 to 4\n',
  });
});

it('says what a file would change', async () => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5');
  const file = join(makeTempDir(), 'weir.json');
  writeFileSync(file, '{ "policies": { "api": { "rate": 6 } } }');
  expect(await json('config', 'diff', file)).toEqual({
    added: [],
    removed: [],
    changed: [{ path: 'policies.api.rate', before: 5, after: 6 }],
    impact: null,
  });
});

it('says that nothing is there', async () => {
  expect((await weir('config', 'get')).out).toBe('# nothing is stored\n{}\n');
  expect((await weir('config', 'history')).out).toBe('nothing is stored\n');
  expect(await weir('config', 'get', 'policies.api')).toEqual({
    code: 1,
    out: '',
    err: 'there is nothing at policies.api: the configuration is empty\n',
  });
  expect((await weir('status')).out).toBe(
    'configuration: nothing is stored\nno process has said which revision it is on\n\ncluster default: no quota\n',
  );
});

it.each([
  ['policies.api.rat', 'did you mean policies.api.rate?'],
  ['polices.api', 'did you mean policies.api?'],
  ['policies["a.c"].rate', 'did you mean policies["a.b"].rate?'],
  ['policies.api.rate.limit', 'did you mean policies.api.rate?'],
  ['policies.something-else.rate', 'policies has api, a.b'],
  ['some.unknown.path', 'the configuration has policies'],
  ['policies.api.tiers.vip.and.much.more.than.anybody.has.ever.asked.for', 'policies.api has rate'],
])('says of a path where nothing is what there is instead: %s', async (path, hint) => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5');
  await weir('config', 'set', '--new', 'policies["a.b"].rate', '5');
  expect(await weir('config', 'get', path)).toEqual({
    code: 1,
    out: '',
    err: `there is nothing at ${path}; ${hint}\n`,
  });
});

it('fails without a lesson in how to use it if a revision is not there', async () => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5');
  expect(await weir('config', 'diff', '99')).toEqual({
    code: 1,
    out: '',
    err: 'revision 99 is not in the history, which has 1 to 1\n',
  });
  await withRedis(stand.redis.port, (client) =>
    client.hset('weir:{config}:current', 'current', '{'),
  );
  const { code, out, err } = await weir('config', 'get');
  expect([code, out, err]).toEqual([
    1,
    '',
    expect.stringMatching(/^revision 1 cannot be read: .*\n$/),
  ]);
});

it('shows who is on which revision, and how the quota stands', async () => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5');
  await weir('config', 'set', 'policies.api.rate', '6');
  await acknowledge(
    stand.redis.url,
    { node: 'a', revision: 2, status: 'applied' },
    { node: 'b', revision: 1, status: 'refused', about: 2, reason: 'no such policy' },
  );
  const limiter = createRateLimiter({
    store: { type: 'redis', url: stand.redis.url },
    quota: { cluster: { capacity: 1000 }, apps: { checkout: { guaranteed: 500 } } },
  });
  await limiter.ready();
  await limiter.tryAcquire({ app: 'checkout' });
  const { out } = await weir('status');
  const lines = out.split('\n').map((line) => line.trim().split(/ {2,}/));
  expect(lines.slice(0, 2)).toEqual([
    ['configuration: revision 2, profile normal'],
    ['1 of 2 processes is not on it'],
  ]);
  expect(lines).toContainEqual(['b', '1', 'refused', expect.any(String), 'no such policy']);
  expect(out).toContain('cluster default: not overloaded');
  expect(lines.find(([app]) => app === 'checkout')?.slice(0, 3)).toEqual([
    'checkout',
    '500',
    '500',
  ]);
  expect(await json('status')).toMatchObject({
    revision: 2,
    clusterId: 'default',
    quota: { capacity: 1000, apps: { checkout: { guaranteed: 500 } } },
  });
  await limiter.close();
});

it('counts the processes that may serve an app, with or without traffic', async () => {
  const options = {
    store: { type: 'redis', url: stand.redis.url },
    quota: {
      cluster: { capacity: 1000 },
      apps: { checkout: { guaranteed: 500 }, reports: { guaranteed: 100 } },
    },
  } as const;
  const both = createRateLimiter(options);
  const one = createRateLimiter({
    ...options,
    quota: { ...options.quota, local: { apps: ['checkout'] } },
  });
  await Promise.all([both.ready(), one.ready()]);
  await both.tryAcquire({ app: 'checkout' });
  const counted = async (): Promise<unknown> => {
    const { processes } = await json<{ processes: unknown }>('status');
    return processes;
  };
  await until(async () => isDeepStrictEqual(await counted(), { checkout: 2, reports: 1 }));
  // The page and `weir top` go by what the processes know.
  const known = (): unknown => {
    const { checkout, reports } = both.stats().quota!.apps;
    return { checkout: checkout!.nodes, reports: reports!.nodes };
  };
  await until(async () => isDeepStrictEqual(known(), await counted()));
  const { out } = await weir('status');
  const lines = out.split('\n').map((line) => line.trim().split(/ {2,}/));
  const app = lines.find(([name]) => name === 'app');
  expect(app?.slice(-2)).toEqual(['processes', 'asking']);
  expect(lines.find(([name]) => name === 'reports')?.slice(-2)).toEqual(['1', '0']);
  await Promise.all([both.close(), one.close()]);
});
