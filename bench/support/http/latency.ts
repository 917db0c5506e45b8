import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { percentile } from '../statistics.js';
import { ServerProcess } from './server-process.js';
import { type Platform, type Variant } from './server.js';

const WARM_UP = 500;
const REQUESTS = 2000;
const SHARE = 0.99;

/** The wait of a caller for its answer, in milliseconds, all but one in a hundred: one request after the other. */
export async function latencyMs(
  platform: Platform,
  variant: Variant,
  redisUrl: string,
): Promise<number> {
  const server = await ServerProcess.start({ platform, variant, redisUrl });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (let n = 0; n < WARM_UP; n++) await ask(server.url, agent);
    const taken: number[] = [];
    for (let n = 0; n < REQUESTS; n++) {
      const began = performance.now();
      await ask(server.url, agent);
      taken.push(performance.now() - began);
    }
    return percentile(taken, SHARE);
  } finally {
    agent.destroy();
    await server.stop();
  }
}

async function ask(url: string, agent: Agent): Promise<void> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`unexpected status ${response.statusCode}`);
  response.resume();
  await once(response, 'end');
}
