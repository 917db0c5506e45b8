import { startFleet } from './fleet.js';
import { startRedis } from './redis.js';

/** Two processes of one app, and one of another: three, one Redis, one capacity. */
const PROCESSES = [
  { app: 'checkout', port: 0 },
  { app: 'checkout', port: 0 },
  { app: 'search', port: 0 },
];

const redis = await startRedis();
const fleet = await startFleet(PROCESSES, redis.url);
const [first, second, third] = fleet.addresses;
const count = (address: string | undefined): string =>
  `seq 200 | xargs -P 20 -I{} curl -s -o /dev/null -w '%{http_code}\\n' ${address}/ | sort | uniq -c`;

console.log(`
checkout on ${first} and ${second}, search on ${third} (Ctrl-C ends all).
The cluster takes 100 requests a second: checkout is sure of 40 and may have 80, search of 20 and 50.

# Both processes of checkout together have what checkout has, not each.
${count(first)} & ${count(second)}; wait

# Search has its share all the same.
${count(third)}

# What the store knows about all of them.
curl -s ${first}/status
`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void stop());
}

async function stop(): Promise<void> {
  await fleet.stop();
  await redis.stop();
}
