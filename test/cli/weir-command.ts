import { runCommand } from '../../lib/cli/run-command.js';
import { SystemClock } from '../../lib/common/clock.js';
import { type NodeReport } from '../../lib/stores/config-store.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { startRedis, stopAll, withRedis, type RedisProcess } from '../support/index.js';

/** Runs a command as `npx weir` does, without a process of its own. */
export async function weirCommand(
  ...args: string[]
): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runCommand(args, {
    log: (text) => (out += `${text}\n`),
    error: (text) => (err += `${text}\n`),
  });
  return { code, out, err };
}

/** The command line on a Redis of its own, empty before each test. */
export function commandStand() {
  let redis: RedisProcess;
  beforeAll(async () => (redis = await startRedis()));
  beforeEach(() => withRedis(redis.port, (client) => client.flushall()));
  afterAll(stopAll);
  const weir = (...args: string[]) => weirCommand(...args, '--url', redis.url);
  return {
    get redis(): RedisProcess {
      return redis;
    },
    weir,
    json: async <T = never>(...args: string[]): Promise<T> =>
      JSON.parse((await weir(...args, '--json')).out) as T,
  };
}

/** Writes the reports of processes, without the processes. */
export async function acknowledge(url: string, ...reports: NodeReport[]): Promise<void> {
  const { client } = connectRedis({ url });
  const store = new RedisConfig({ client, prefix: 'weir', timeoutMs: 5000 }, new SystemClock());
  for (const report of reports) await store.acknowledge(report, 60_000);
  await store.close();
  client.disconnect();
}
