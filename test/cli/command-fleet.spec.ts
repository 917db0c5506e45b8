import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRateLimiter, type QuotaOptions } from 'nestjs-weir';
import { clusterAt } from '../../lib/cli/store-options.js';
import { makeTempDir } from '../support/processes.js';
import { startRedisCluster, withRedis, type RedisCluster } from '../support/index.js';
import { acknowledge, commandStand, weirCommand } from './weir-command.js';

const stand = commandStand();
const { weir, json } = stand;

describe('what no running process could follow', () => {
  const quota = { cluster: { capacity: 1000 }, apps: { checkout: { guaranteed: 500 } } };

  /** The refusal of a process with that quota to work with another. */
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
    await acknowledge(stand.redis.url, { node: 'a', revision: 2, status: 'applied' });
    const told = {
      code: 1,
      out: '',
      err: `the configuration was refused: ${await refusalOf({ ...quota, clusterId: 'other' }, quota)}\n`,
    };
    expect(told.err).toContain('quota.clusterId: expected "default", as at the start');
    expect(await weir('config', 'set', 'cluster.id', 'other')).toEqual(told);
    const file = fileOf({ cluster: { id: 'other' }, policies: { api: { rate: 5 } } });
    expect(await weir('config', 'set', '--new', '--patch', file)).toEqual(told);
    expect(await weir('config', 'rollback', '1')).toEqual(told);
    expect(await json('config', 'get')).toMatchObject({ revision: 2 });
    expect((await weir('config', 'set', 'cluster.id', 'default')).code).toBe(0);
  });

  it('is shown by diff, with the reason, as a failure', async () => {
    await weir('config', 'set', '--patch', fileOf(quota));
    await acknowledge(stand.redis.url, { node: 'a', revision: 1, status: 'applied' });
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

  it('is no quota where there was one; but one may be added, as others may have use for it', async () => {
    await weir('config', 'set', '--new', 'policies.api.rate', '5');
    await acknowledge(stand.redis.url, { node: 'a', revision: 1, status: 'applied' });
    expect(await refusalOf(quota)).toBe('nothing');
    expect((await weir('config', 'set', '--patch', fileOf(quota))).code).toBe(0);
    await acknowledge(stand.redis.url, { node: 'a', revision: 2, status: 'applied' });
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
    await acknowledge(stand.redis.url, { node: 'a', revision: 1, ...refused });
    expect((await weir('config', 'set', 'cluster.capacity', '2000')).err).toContain('"default"');
    expect((await weir('config', 'rollback', '1')).code).toBe(0);
    // Of processes before and after a deploy each can follow its own.
    await acknowledge(stand.redis.url, { node: 'b', revision: 2, status: 'applied' });
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
    weirCommand(
      ...args,
      '--url',
      `redis://ann:p%40ss%2Fword@127.0.0.1:${cluster.nodes[node]!.port}`,
      '--redis-cluster',
    );

  it('does what it does elsewhere, by way of any node', async () => {
    const set = await onCluster(
      0,
      'config',
      'set',
      '--new',
      'policies.api.rate',
      '5',
      '--by',
      'ann',
    );
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
      const { code, err } = await weirCommand('config', 'get', '--url', url, '--redis-cluster');
      expect([code, err]).toEqual([2, expect.stringContaining(`The address must be like`)]);
    }
  });

  it('says what to add if the address is taken for that of a single server', async () => {
    const results = await Promise.all(
      cluster.nodes.map(({ port }) =>
        weirCommand('config', 'get', '--url', `redis://127.0.0.1:${port}`),
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
