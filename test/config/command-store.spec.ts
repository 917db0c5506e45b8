import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRateLimiter, type QuotaOptions } from 'nestjs-weir';
import { runCommand } from '../../lib/command/index.js';
import { clusterAt } from '../../lib/command/store-options.js';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisConfig, type NodeReport } from '../../lib/stores/index.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { makeTempDir } from '../support/processes.js';
import {
  startRedis,
  startRedisCluster,
  stopAll,
  withRedis,
  type RedisCluster,
  type RedisProcess,
} from '../support/index.js';

let redis: RedisProcess;

beforeAll(async () => (redis = await startRedis()));
beforeEach(() => withRedis(redis.port, (client) => client.flushall()));
afterAll(stopAll);

const weir = (...args: string[]) => command(...args, '--url', redis.url);

async function command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runCommand(args, {
    log: (text) => (out += `${text}\n`),
    error: (text) => (err += `${text}\n`),
  });
  return { code, out, err };
}

/** What processes say of themselves, without the processes. */
async function acknowledge(...reports: NodeReport[]): Promise<void> {
  const { client } = connectRedis({ url: redis.url });
  const store = new RedisConfig({ client, prefix: 'weir', timeoutMs: 5000 }, new SystemClock());
  for (const report of reports) await store.acknowledge(report, 60_000);
  await store.close();
  client.disconnect();
}

const json = async (...args: string[]): Promise<never> =>
  JSON.parse((await weir(...args, '--json')).out) as never;

it('sets a field, and shows what changed', async () => {
  const first = await weir('config', 'set', 'policies.api.rate', '100/min', '--by', 'ann');
  expect(first).toEqual({
    code: 0,
    out: 'revision 1\n   path      before  after\n+  policies          {"api":{"rate":"100/min"}}\n',
    err: '',
  });
  const second = await weir('config', 'set', 'policies["a.b"].rate', '5');
  expect(second.out).toContain('+  policies["a.b"]          {"rate":5}');
  expect(await json('config', 'get')).toEqual({
    revision: 2,
    profile: 'normal',
    document: { policies: { api: { rate: '100/min' }, 'a.b': { rate: 5 } } },
  });
  await weir('config', 'set', 'policies["a.b"]', 'null');
  expect(await json('config', 'get', 'policies')).toMatchObject({
    revision: 3,
    document: { api: { rate: '100/min' } },
  });
});

it('lays a whole file over what holds', async () => {
  const file = join(makeTempDir(), 'patch.yaml');
  writeFileSync(file, 'policies:\n  api: { rate: 5, burst: 9 }\n');
  expect((await weir('config', 'set', '--patch', file)).code).toBe(0);
  const { out } = await weir('config', 'get', 'policies.api');
  expect(out).toMatch(
    /^# revision 1, profile normal: update by \S+ at 20\S+Z\nrate: 5\nburst: 9\n$/,
  );
});

it('changes nothing if the document would be wrong, or another one holds', async () => {
  await weir('config', 'set', 'policies.api.rate', '5');
  const wrong = await weir('config', 'set', 'policies.api.cost', '9');
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain('policies.api.cost: expected at most 5, got 9');
  const misspelt = await weir('config', 'set', 'policies.api.rat', '9');
  expect(misspelt.err).toContain("policies.api.rat: no such field; did you mean 'rate'?");
  const late = await weir('config', 'set', 'policies.api.rate', '7', '--expected', '9');
  expect([late.code, late.err]).toEqual([
    1,
    'the configuration is at revision 1, not 9; nothing was changed\n',
  ]);
  expect(await json('config', 'get')).toMatchObject({ revision: 1 });
});

it('waits for a time, and says so', async () => {
  await weir('config', 'set', 'policies.api.rate', '5');
  const { out } = await weir(
    'config',
    'set',
    'policies.api.rate',
    '6',
    '--at',
    '2100-01-01T00:00:00Z',
  );
  expect(out).toMatch(
    /^revision 2 takes effect at 2100-01-01T00:00:00Z\n[^]*~ {2}policies.api.rate {2}5 {7}6\n$/,
  );
  const { out: got } = await weir('config', 'get', 'policies.api');
  expect(got).toContain('# revision 2 takes effect at 2100-01-01T00:00:00Z\nrate: 5\n');
  const { code, err } = await weir('config', 'set', 'policies.api.rate', '7');
  expect([code, err]).toEqual([
    1,
    'revision 2 takes effect at 2100-01-01T00:00:00.000Z; roll it back, or wait until then\n',
  ]);
});

it('lists, compares and rolls back', async () => {
  for (const rate of ['5', '6', '7']) {
    await weir('config', 'set', 'policies.api.rate', rate, '--by', 'ann');
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
    err: 'revision 99 is not in the history\n',
  });
});

it('says what a file would change', async () => {
  await weir('config', 'set', 'policies.api.rate', '5');
  const file = join(makeTempDir(), 'weir.json');
  writeFileSync(file, '{ "policies": { "api": { "rate": 6 } } }');
  expect(await json('config', 'diff', file)).toEqual({
    added: [],
    removed: [],
    changed: [{ path: 'policies.api.rate', before: 5, after: 6 }],
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
  await weir('config', 'set', 'policies.api.rate', '5');
  await weir('config', 'set', 'policies["a.b"].rate', '5');
  expect(await weir('config', 'get', path)).toEqual({
    code: 1,
    out: '',
    err: `there is nothing at ${path}; ${hint}\n`,
  });
});

it('fails without a lesson in how to use it if a revision is not there', async () => {
  await weir('config', 'set', 'policies.api.rate', '5');
  expect(await weir('config', 'diff', '99')).toEqual({
    code: 1,
    out: '',
    err: 'revision 99 is not in the history\n',
  });
  await withRedis(redis.port, (client) => client.hset('weir:{config}:current', 'current', '{'));
  const { code, out, err } = await weir('config', 'get');
  expect([code, out, err]).toEqual([
    1,
    '',
    expect.stringMatching(/^revision 1 cannot be read: .*\n$/),
  ]);
});

it('shows who is on which revision, and how the quota stands', async () => {
  await weir('config', 'set', 'policies.api.rate', '5');
  await weir('config', 'set', 'policies.api.rate', '6');
  await acknowledge(
    { node: 'a', revision: 2, status: 'applied' },
    { node: 'b', revision: 1, status: 'refused', about: 2, reason: 'no such policy' },
  );
  const limiter = createRateLimiter({
    store: { type: 'redis', url: redis.url },
    quota: { cluster: { capacity: 1000 }, apps: { checkout: { guaranteed: 500 } } },
  });
  await limiter.ready();
  await limiter.tryAcquire({ app: 'checkout' });
  const { out } = await weir('status');
  const lines = out.split('\n').map((line) => line.trim().split(/ {2,}/));
  expect(lines.slice(0, 2)).toEqual([
    ['configuration: revision 2, profile normal'],
    ['1 of 2 processes are not on it'],
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

describe('what no running process could follow', () => {
  const quota = { cluster: { capacity: 1000 }, apps: { checkout: { guaranteed: 500 } } };

  /** What a process with that quota says of another. */
  async function refusalOf(other: QuotaOptions | undefined, own?: QuotaOptions): Promise<string> {
    const limiter = createRateLimiter(own === undefined ? {} : { quota: own });
    try {
      limiter.prepare({ revision: 1, policies: {}, ...(other && { quota: other }) });
      return 'nothing';
    } catch (error) {
      return (error as Error).message;
    } finally {
      await limiter.close();
    }
  }

  function fileOf(document: object): string {
    const file = join(makeTempDir(), 'weir.json');
    writeFileSync(file, JSON.stringify(document));
    return file;
  }

  it('is another cluster: set, patch and rollback refuse it in the words of the process', async () => {
    await weir(
      'config',
      'set',
      '--patch',
      fileOf({ ...quota, cluster: { id: 'other', capacity: 9e3 } }),
    );
    await weir('config', 'set', 'cluster.id', 'null');
    await acknowledge({ node: 'a', revision: 2, status: 'applied' });
    const told = {
      code: 1,
      out: '',
      err: `the configuration was refused: ${await refusalOf({ ...quota, clusterId: 'other' }, quota)}\n`,
    };
    expect(told.err).toContain('quota.clusterId: expected "default", as at the start');
    expect(await weir('config', 'set', 'cluster.id', 'other')).toEqual(told);
    const file = fileOf({ cluster: { id: 'other' }, policies: { api: { rate: 5 } } });
    expect(await weir('config', 'set', '--patch', file)).toEqual(told);
    expect(await weir('config', 'rollback', '1')).toEqual(told);
    expect(await json('config', 'get')).toMatchObject({ revision: 2 });
    expect((await weir('config', 'set', 'cluster.id', 'default')).code).toBe(0);
  });

  it('is shown by diff, with the reason, as a failure', async () => {
    await weir('config', 'set', '--patch', fileOf(quota));
    await acknowledge({ node: 'a', revision: 1, status: 'applied' });
    const { code, out, err } = await weir(
      'config',
      'diff',
      fileOf({ ...quota, cluster: { id: 'eu', capacity: 9e3 } }),
    );
    expect(out).toContain('+  cluster.id                "eu"');
    expect([code, err]).toEqual([
      1,
      'running processes would refuse it: quota.clusterId: expected "default", as at the start: ' +
        'other values need a restart, got "eu"\n',
    ]);
    // Laid over what holds it leaves the quota as it is.
    expect(await weir('config', 'diff', fileOf({ policies: { api: { rate: 5 } } }))).toMatchObject({
      code: 0,
      err: '',
    });
  });

  it('is a quota where there was none, or none where there was one', async () => {
    await weir('config', 'set', 'policies.api.rate', '5');
    await acknowledge({ node: 'a', revision: 1, status: 'applied' });
    const added = await weir('config', 'set', '--patch', fileOf(quota));
    expect([added.code, added.err]).toEqual([
      1,
      `the configuration was refused: ${await refusalOf(quota)}\n`,
    ]);
    await withRedis(redis.port, (client) => client.flushall());
    await weir('config', 'set', '--patch', fileOf({ ...quota, policies: { api: { rate: 5 } } }));
    await acknowledge({ node: 'a', revision: 1, status: 'applied' });
    const removed = await weir('config', 'set', '--patch', fileOf({ apps: null, cluster: null }));
    expect([removed.code, removed.err]).toEqual([
      1,
      `the configuration was refused: ${await refusalOf(undefined, quota)}\n`,
    ]);
  });

  it('may be set while none runs, and taken back if some have refused it since', async () => {
    await weir('config', 'set', '--patch', fileOf(quota));
    expect((await weir('config', 'set', 'cluster.id', 'other')).code).toBe(0);
    const refused = { status: 'refused', about: 2, reason: 'another cluster' } as const;
    await acknowledge({ node: 'a', revision: 1, ...refused });
    expect((await weir('config', 'set', 'cluster.capacity', '2000')).err).toContain('"default"');
    expect((await weir('config', 'rollback', '1')).code).toBe(0);
    // Of processes before and after a deploy each can follow its own.
    await acknowledge({ node: 'b', revision: 2, status: 'applied' });
    expect((await weir('config', 'set', 'cluster.id', 'other')).code).toBe(0);
    expect((await weir('config', 'set', 'cluster.id', 'third')).err).toContain(
      'expected "default" or "other", as at the start',
    );
  });
});

describe('on a Redis Cluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 });
    for (const { port } of cluster.nodes) {
      await withRedis(port, (client) =>
        client.call('ACL', 'SETUSER', 'ann', 'on', '>p@ss/word', '~*', '&*', '+@all'),
      );
    }
  });

  /** Any node leads to the others. */
  const onCluster = (node: number, ...args: string[]) =>
    command(
      ...args,
      '--url',
      `redis://ann:p%40ss%2Fword@127.0.0.1:${cluster.nodes[node]!.port}`,
      '--redis-cluster',
    );

  it('does what it does elsewhere, by way of any node', async () => {
    const set = await onCluster(0, 'config', 'set', 'policies.api.rate', '5', '--by', 'ann');
    expect(set).toMatchObject({ code: 0, err: '' });
    expect(set.out).toContain('revision 1\n');
    await onCluster(1, 'config', 'set', 'policies.api.rate', '6', '--by', 'ben');
    expect((await onCluster(2, 'config', 'get', 'policies.api')).out).toContain('rate: 6\n');
    expect((await onCluster(0, 'config', 'diff', '1')).out).toContain('~  policies.api.rate');
    const { out: history } = await onCluster(1, 'config', 'history', '--json');
    expect(JSON.parse(history)).toMatchObject([
      { revision: 2, by: 'ben' },
      { revision: 1, by: 'ann' },
    ]);
    expect((await onCluster(2, 'config', 'rollback', '1')).out).toContain('revision 3\n');
  });

  it('shows the quota and who is on which revision', async () => {
    const quota = { cluster: { capacity: 1000 }, apps: { checkout: { guaranteed: 500 } } };
    const nodes = [...cluster.nodes];
    const limiter = createRateLimiter({ store: { type: 'redis', cluster: { nodes } }, quota });
    await limiter.ready();
    await limiter.tryAcquire({ app: 'checkout' });
    const { code, out } = await onCluster(1, 'status');
    expect([code, out]).toEqual([0, expect.stringContaining('cluster default: not overloaded')]);
    expect(out).toMatch(/checkout +500/);
    await limiter.close();
  });

  it('takes encryption and the address of IPv6 from the URL', () => {
    expect(clusterAt('rediss://:s%20cret@[::1]:7001')).toEqual({
      nodes: [{ host: '::1', port: 7001 }],
      options: { redisOptions: { password: 's cret', tls: {} } },
    });
    expect(clusterAt('redis://ann:100%@redis.local')).toEqual({
      nodes: [{ host: 'redis.local', port: 6379 }],
      options: { redisOptions: { username: 'ann', password: '100%' } },
    });
  });

  it('does not take what is no address', async () => {
    for (const url of ['redis://[', 'redis://a:b:c', 'localhost']) {
      const { code, err } = await command('config', 'get', '--url', url, '--redis-cluster');
      expect([code, err]).toEqual([2, expect.stringContaining(`The address must be like`)]);
    }
  });

  it('says what to add if the address is taken for that of a single server', async () => {
    const results = await Promise.all(
      cluster.nodes.map(({ port }) =>
        command('config', 'get', '--url', `redis://127.0.0.1:${port}`),
      ),
    );
    const failed = results.filter(({ code }) => code !== 0);
    expect(failed).toHaveLength(2);
    for (const { code, err } of failed) {
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(
          /^store unavailable: redis:[^ ]+ MOVED \d+ [^ ]+; .*add --redis-cluster\n$/,
        ),
      ]);
    }
  });
});
