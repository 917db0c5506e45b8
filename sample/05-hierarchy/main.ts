import { announce, isTour } from '../support/serve.js';
import { startFleet } from './fleet.js';
import { guideTo } from './guide.js';
import { startRedis } from './redis.js';

/** Two processes of one app, and one of another: three, one Redis, one capacity. */
const PROCESSES = [
  { app: 'checkout', port: 0 },
  { app: 'checkout', port: 0 },
  { app: 'search', port: 0 },
];

const redis = await startRedis();
const fleet = await startFleet(PROCESSES, redis.url);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void stop());
}
await announce(fleet.addresses[0]!, guideTo(fleet.addresses));
if (isTour) await stop();

async function stop(): Promise<void> {
  await fleet.stop();
  await redis.stop();
}
