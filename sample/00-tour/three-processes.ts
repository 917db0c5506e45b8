import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ended } from '../05-hierarchy/ended.js';
import { startRedis } from '../05-hierarchy/redis.js';
import { RedisSwitch } from '../06-product-page/redis-switch.js';
import { type Shop } from './one-process.js';
import { NODES } from './shop-node.js';
import { callOn, type Stage, type StageCall } from './stage.js';
import { Traffic } from './traffic.js';

const NODE = fileURLToPath(new URL('./node-process.js', import.meta.url));

/**
 * Three on one machine: with fewer threads and arenas, collected before garbage piles up, and compiled only where that is
 * small or often run, each holds 88 MB where it would hold 130. More than half of that is Node itself, whose pages the three
 * share; most of the rest, 24 MB, is the code of Nest and its parts.
 */
const SMALL = [
  ...['--max-semi-space-size=1', '--max-old-space-size=36', '--v8-pool-size=1'],
  // The compilers hold more than they save at a hundred requests a second.
  ...['--optimize-for-size', '--max-lazy', '--no-sparkplug', '--max-optimized-bytecode-size=300'],
];

/** What a node tells this process: where it listens, once, and then what its buttons want. */
export type Told = { readonly address: string | undefined } | StageCall;

/** What this process tells a node: where all listen, once, and when its database is to be slow. */
export type Order = { readonly addresses: readonly string[] } | { readonly slowFor: number };

/** Three processes on a real Redis, behind a switch; this one makes the traffic. Undefined if the port is taken. */
export async function startThreeProcesses(port: number): Promise<Shop | undefined> {
  const redis = await startRedis();
  const between = await RedisSwitch.before(redis.url);
  const traffic = new Traffic();
  const children: ChildProcess[] = [];
  let comesBack: NodeJS.Timeout | undefined;
  const stage: Stage = {
    raise: (...args) => traffic.raise(...args),
    takeStoreAway: (seconds) => {
      between.turn('off');
      clearTimeout(comesBack);
      comesBack = setTimeout(() => between.turn('on'), seconds * 1000).unref();
    },
    slowDatabase: (seconds) => orderAll({ slowFor: seconds }),
  };
  const orderAll = (order: Order): void => {
    for (const child of children) if (child.connected) child.send(order);
  };
  const stop = async (): Promise<void> => {
    traffic.stop();
    // A node closes when it is alone, and so it does when this process ends without a word.
    for (const child of children) if (child.connected) child.disconnect();
    await Promise.all(children.map(ended));
    between.close();
    await redis.stop();
  };
  const addresses = await Promise.all(
    NODES.map((nodeId, index) => {
      const env = {
        ...process.env,
        NODE_ID: nodeId,
        REDIS_URL: between.url,
        MALLOC_ARENA_MAX: '1',
      };
      const child = fork(NODE, {
        env: { ...env, PORT: index === 0 ? String(port) : '0' },
        execArgv: SMALL,
      });
      children.push(child);
      return addressOf(child, stage);
    }),
  );
  if (addresses.includes(undefined)) {
    await stop();
    return undefined;
  }
  const known = addresses as string[];
  orderAll({ addresses: known });
  traffic.start(known);
  return { address: known[0]!, stop };
}

/** Undefined if it does not come to listen; it has said why. */
function addressOf(child: ChildProcess, stage: Stage): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.on('message', (told: Told) => {
      if ('call' in told) callOn(stage, told);
      else resolve(told.address);
    });
    child.once('exit', () => resolve(undefined));
  });
}
