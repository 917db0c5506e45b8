import { withRedis } from './redis-client.js';
import type { NodeAddress } from './redis-cluster.js';
import { startPrimaryWithReplica } from './redis-replication.js';
import { type RedisProcess, startRedis } from './redis-server.js';
import { until } from './until.js';

export interface RedisSentinels {
  /** The name that the sentinels have for the primary they watch. */
  readonly name: string;
  readonly sentinels: readonly NodeAddress[];
  /** The server that was primary at the start. */
  readonly primary: RedisProcess;
  readonly replica: RedisProcess;
  /** Resolves when every sentinel names the replica as the primary. */
  failedOver(): Promise<void>;
  stop(): Promise<void>;
}

const NAME = 'weir';
const SENTINELS = 3;
const QUORUM = 2;
const READY_TIMEOUT_MS = 60_000;

/** Starts a primary, a replica and three sentinels that know of each other. */
export async function startSentinel(): Promise<RedisSentinels> {
  const { primary, replica, stop: stopServers } = await startPrimaryWithReplica();
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, () =>
      startRedis({
        mode: 'sentinel',
        config: {
          'sentinel monitor': `${NAME} ${primary.host} ${primary.port} ${QUORUM}`,
          'sentinel down-after-milliseconds': `${NAME} 500`,
          'sentinel failover-timeout': `${NAME} 3000`,
        },
      }),
    ),
  );
  await until(
    async () => {
      const views = await Promise.all(sentinels.map((sentinel) => viewOf(sentinel)));
      return views.every(
        (view) =>
          view.get('flags') === 'master' &&
          view.get('num-slaves') === '1' &&
          view.get('num-other-sentinels') === String(SENTINELS - 1),
      );
    },
    { timeoutMs: READY_TIMEOUT_MS, what: 'the sentinels to find each other' },
  );
  return {
    name: NAME,
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    primary,
    replica,
    async failedOver() {
      await until(
        async () => {
          const views = await Promise.all(sentinels.map((sentinel) => viewOf(sentinel)));
          return views.every((view) => view.get('port') === String(replica.port));
        },
        { timeoutMs: READY_TIMEOUT_MS, what: 'the sentinels to agree on a new primary' },
      );
    },
    async stop() {
      await Promise.all(sentinels.map((sentinel) => sentinel.stop()));
      await stopServers();
    },
  };
}

/** SENTINEL MASTER answers with names and values in turn. */
async function viewOf(sentinel: RedisProcess): Promise<Map<string, string>> {
  const reply = await withRedis(sentinel.port, (client) => client.call('SENTINEL', 'MASTER', NAME));
  const words = Array.isArray(reply) ? reply.map(String) : [];
  const view = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) view.set(words[i] ?? '', words[i + 1] ?? '');
  return view;
}
