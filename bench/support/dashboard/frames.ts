import { setImmediate as nextTurn } from 'node:timers/promises';
import { RateLimiter } from 'nestjs-weir';
import { ManualClock } from 'nestjs-weir/testing';
import { startViewed } from './viewed-app.js';

// Ten minutes of a process with so many viewers, on a clock that is moved by hand: what the ticks and frames of a second
// take in CPU milliseconds, and how many bytes it holds more at the end than after two minutes; as JSON.

const SECONDS = 600;
const SETTLED_SECONDS = 120;
const DECISIONS_PER_SECOND = 10_000;
/** Enough policies for a frame of about 12 kB. */
const POLICIES = 60;
/** Turns of the loop in which the frame of a second is made and written. */
const TURNS = 4;

export interface Watched {
  readonly cpuMs: readonly number[];
  readonly frameBytes: number;
  readonly grownBytes: number;
}

const policies = Object.fromEntries(
  Array.from({ length: POLICIES }, (_, index) => [
    `policy-of-some-length-${index}`,
    { rate: 1_000_000, period: '1s' as const },
  ]),
);
const clock = new ManualClock();
const { app, url, taken, close } = await startViewed({ policies, clock }, Number(process.argv[2]));
const limiter = app.get(RateLimiter);
const cpuMs: number[] = [];
let settledBytes = 0;
for (let second = 0; second < SECONDS; second++) {
  for (let n = 0; n < DECISIONS_PER_SECOND; n++) {
    void limiter.tryAcquire({ policy: `policy-of-some-length-${n % POLICIES}`, key: 'k', cost: 1 });
  }
  const before = process.cpuUsage();
  clock.advance(1000);
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  const { user, system } = process.cpuUsage(before);
  cpuMs.push((user + system) / 1000);
  // A viewer has a second for a frame; here it has as long as it needs, or it would be cut.
  await taken();
  if (second === SETTLED_SECONDS) settledBytes = await bytesHeld();
}
const grownBytes = (await bytesHeld()) - settledBytes;
const frameBytes = (await (await fetch(`${url}api/state`)).text()).length;
const watched: Watched = { cpuMs, frameBytes, grownBytes };
process.stdout.write(JSON.stringify(watched));
await close();
process.exit(0);

async function bytesHeld(): Promise<number> {
  await taken();
  globalThis.gc!();
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
