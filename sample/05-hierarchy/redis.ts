import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { ended } from './ended.js';

/**
 * The server ends with this process, however that ends: a shell waits at a pipe that breaks with it. Ctrl-C and the end of
 * a terminal, which are told to all of them, are for this process to answer: Redis takes no notice of the latter.
 */
const UNTIL_THE_PIPE_BREAKS =
  'trap "" INT HUP; "$0" "$@" 3<&- & server=$!; { read -r _ <&3; kill $server; } 2>/dev/null & wait $server';

export interface RedisServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** The server that REDIS_URL names; else one of its own, which keeps nothing. */
export async function startRedis(): Promise<RedisServer> {
  const { REDIS_URL: given, REDIS_SERVER_BIN: program = 'redis-server' } = process.env;
  if (given) return { url: given, stop: () => Promise.resolve() };
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('sh', ['-c', UNTIL_THE_PIPE_BREAKS, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  const [, output, , pipe] = server.stdio;
  const lines = createInterface({ input: output! });
  const failed = once(server, 'exit').then(() => {
    throw new Error(`${program} did not start; set REDIS_URL to one that runs`);
  });
  await Promise.race([failed, readiness(lines)]);
  failed.catch(() => {});
  output!.resume();
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: () => {
      pipe!.destroy();
      return ended(server);
    },
  };
}

async function readiness(lines: AsyncIterable<string>): Promise<void> {
  for await (const line of lines) if (line.includes('Ready to accept connections')) return;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
