import { infoField, withRedis } from './redis-client.js';
import { type RedisProcess, startRedis } from './redis-server.js';
import { until } from './until.js';

export interface ReplicatedRedis {
  readonly primary: RedisProcess;
  readonly replica: RedisProcess;
  /** Makes the replica a primary, as an operator would; the old primary is left as it is. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

// Redis 7 waits five seconds for more replicas before it sends the first one its data.
const CONFIG = { 'repl-diskless-sync-delay': 0 };
const LINK_TIMEOUT_MS = 20_000;

/** Starts a primary and a replica of it that has caught up. */
export async function startPrimaryWithReplica(): Promise<ReplicatedRedis> {
  const primary = await startRedis({ config: CONFIG });
  const replica = await startRedis({
    config: { ...CONFIG, replicaof: `${primary.host} ${primary.port}` },
  });
  await until(
    async () =>
      (await replicationField(replica, 'master_link_status')) === 'up' &&
      (await replicationField(primary, 'slave0'))?.includes('state=online'),
    { timeoutMs: LINK_TIMEOUT_MS, what: 'a replica to catch up' },
  );
  return {
    primary,
    replica,
    async promote() {
      await withRedis(replica.port, (client) => client.replicaof('NO', 'ONE'));
      await until(async () => (await replicationField(replica, 'role')) === 'master', {
        what: 'the replica to be promoted',
      });
    },
    async stop() {
      // A primary waits for its replica before it goes, so the replica goes first.
      await replica.stop();
      await primary.stop();
    },
  };
}

async function replicationField(server: RedisProcess, field: string): Promise<string | undefined> {
  return infoField(await withRedis(server.port, (client) => client.info('replication')), field);
}
