import 'reflect-metadata';
import { portFrom } from '../support/listen.js';
import { openInBrowser } from './browser.js';
import { startInOneProcess } from './one-process.js';
import { startThreeProcesses } from './three-processes.js';

const isOnRedis = process.argv.includes('--redis');
const port = portFrom(process.env.PORT);
const shop = await (isOnRedis ? startThreeProcesses(port) : startInOneProcess(port));
if (shop !== undefined) {
  const what = isOnRedis
    ? 'a shop of three processes on a Redis'
    : 'a shop of three nodes in one process, on a Redis in it (-- --redis: three processes on a real one)';
  console.log(`
The dashboard     ${shop.address}/weir/
Who may look      this machine only
What runs         ${what}, about 280 requests a second
To end it         Ctrl-C`);
  if (process.argv.includes('--open')) openInBrowser(new URL(shop.address).port);
  let stopping: Promise<void> | undefined;
  // A terminal tells its end to all processes; npm start passes it on besides, as it may be told alone.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void (stopping ??= shop.stop()));
  }
} else process.exitCode = 1;
