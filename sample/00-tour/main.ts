import 'reflect-metadata';
import { portFrom } from '../support/listen.js';
import { startFleet } from './fleet.js';

const wantsRedis = Boolean(process.env.REDIS_URL || process.env.REDIS_SERVER_BIN);
const fleet = await startFleet(portFrom(process.env.PORT), wantsRedis);
if (fleet !== undefined) {
  const { address, kind, nodes, stop } = fleet;
  console.log(`
The dashboard     ${address}/weir/
Who may look      this machine only
What runs         a shop of ${nodes} ${nodes === 1 ? 'node' : 'nodes'}, its store ${kind === 'redis' ? 'a Redis of its own' : 'in memory'}, about 280 requests a second
To end it         Ctrl-C`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop());
}
