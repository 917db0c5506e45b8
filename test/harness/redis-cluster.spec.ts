import { Cluster } from 'ioredis';
import { startRedisCluster, stopAll, until } from '../support/index.js';

afterAll(stopAll);

describe('startRedisCluster', () => {
  it('takes writes in every shard, and goes on when a master is killed', async () => {
    const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 1 });
    expect(cluster.nodes).toHaveLength(6);
    const pids = cluster.processes.map(({ pid }) => pid);

    const client = new Cluster([...cluster.nodes]);
    client.on('error', () => undefined);
    const keys = Array.from({ length: 30 }, (_, i) => `key-${i}`);
    const writeAll = () => Promise.all(keys.map((key) => client.set(key, 'value')));
    await writeAll();

    await cluster.killMaster(1);
    await cluster.failedOver(1);
    await until(writeAll, { what: 'writes after the failover', timeoutMs: 10_000 });

    client.disconnect();
    await cluster.stop();
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('starts two at once, without replicas too', async () => {
    const clusters = await Promise.all([
      startRedisCluster({ masters: 3, replicasPerMaster: 0 }),
      startRedisCluster({ masters: 3, replicasPerMaster: 0 }),
    ]);
    for (const cluster of clusters) {
      const client = new Cluster([...cluster.nodes]);
      expect(await client.set('key', 'value')).toBe('OK');
      client.disconnect();
      await cluster.stop();
    }
  });
});
