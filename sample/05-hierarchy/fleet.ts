import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ended } from './ended.js';

export interface Fleet {
  readonly addresses: readonly string[];
  stop(): Promise<void>;
}

const NODE = fileURLToPath(new URL('./node.js', import.meta.url));

export async function startFleet(
  processes: readonly { readonly app: string; readonly port: number }[],
  redisUrl: string,
): Promise<Fleet> {
  const children = processes.map(({ app, port }) =>
    fork(NODE, {
      env: { ...process.env, APP: app, PORT: String(port), REDIS_URL: redisUrl },
    }),
  );
  const addresses = await Promise.all(children.map(addressOf));
  // Each of them can then tell what to try with all.
  for (const child of children) child.send(addresses);
  return {
    addresses,
    stop: async () => {
      for (const child of children) child.kill('SIGTERM');
      await Promise.all(children.map(ended));
    },
  };
}

/** Each says where it listens once it does. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('message', (address) => resolve(address as string));
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)));
  });
}
