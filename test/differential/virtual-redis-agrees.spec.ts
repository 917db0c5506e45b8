import { historyOf } from '../../lib/cli/simulator/history/history.js';
import { HistoryRun } from '../../lib/cli/simulator/history/run-history.js';
import { type RedisCall } from '../../lib/cli/simulator/redis/virtual-redis.js';
import { defineScripts } from '../../lib/stores/redis/scripts.js';
import { startRedis, stopAll, withRedis } from '../support/index.js';

const LIMIT_SIZE = 8;
const NEVER_MS = 1e9;
/** Losses of the server's data, which cannot be done to the real one at the same instant. */
const LOSSES: readonly string[] = ['flush', 'restart', 'lag'];
const HISTORIES = 4;

interface Exchange {
  readonly command: string;
  readonly args: (string | number | Buffer)[];
  readonly reply: unknown;
}

afterAll(stopAll);

/** The calls to the simulator's server and its replies, with the instant written into the calls. */
async function exchangesOf(seed: number): Promise<Exchange[]> {
  const history = historyOf(seed);
  const run = new HistoryRun(history);
  const exchanges: Exchange[] = [];
  const { server } = run;
  const receive = server.receive.bind(server);
  server.receive = (call: RedisCall) => {
    const args = withInstant(call, server.now());
    receive({
      ...call,
      args,
      answer: (reply) => {
        exchanges.push({ command: call.command, args, reply });
        call.answer(reply);
      },
    });
  };
  await run.run();
  return exchanges;
}

/** Redis forgets by its own clock, which is not the simulator's: so it never may. */
function withInstant({ command, args }: RedisCall, now: number): Exchange['args'] {
  const copy = [...args];
  if (command === 'weirLease') copy[6] = String(now);
  if (command === 'weirForgetBucket') copy.splice(2, 2, String(now), NEVER_MS);
  if (command !== 'weirBuckets') return copy;
  const first = 1 + Number(args[0]);
  copy[first] = String(now);
  for (let at = first + 3; at < copy.length; at += LIMIT_SIZE) copy[at + LIMIT_SIZE - 1] = NEVER_MS;
  return copy;
}

describe('the virtual Redis', () => {
  it('answers what the scripts answer, to the byte', async () => {
    const redis = await startRedis();
    const seeds: number[] = [];
    for (let seed = 1; seeds.length < HISTORIES; seed++) {
      if (historyOf(seed).events.every(({ kind }) => !LOSSES.includes(kind))) seeds.push(seed);
    }
    await withRedis(redis.port, async (client) => {
      const scripts = defineScripts(client);
      for (const seed of seeds) {
        await client.flushall();
        const exchanges = await exchangesOf(seed);
        expect(exchanges.length).toBeGreaterThan(100);
        for (const { command, args, reply } of exchanges) {
          if (command === 'weirBuckets') {
            expect(await scripts.buckets(args as string[], () => true)).toEqual(reply);
          } else if (command === 'weirLease') {
            const bytes = await scripts
              .lease(args as Buffer[], (one) => one)
              .catch((error: Error) => error.message);
            expect(bytes).toEqual(reply instanceof Error ? reply.message : reply);
          } else if (command === 'weirSeedLimits') {
            const [written, revision, names] = reply as unknown[];
            const own = args.slice(0, -1) as Buffer[];
            expect(await scripts.seedLimits(own)).toEqual([written, revision, names]);
          } else if (command === 'weirForgetBucket') {
            const [bucket, reset, now] = args.map(String) as [string, string, string];
            await scripts.forgetBucket(bucket, reset, now, NEVER_MS);
          }
        }
      }
    });
  });
});
