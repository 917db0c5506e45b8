import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { RateLimiter } from 'nestjs-weir';
import { ManualClock } from 'nestjs-weir/testing';
import { bareSockets } from './bare-sockets.js';
import { startViewed } from './viewed-app.js';
import { type Held, type Minute } from './watched-process.js';

// The other side of `WatchedProcess`.

const SETTLED_MINUTES = 2;
const SECONDS = 60;
/** Enough policies for a frame of about 12 kB. */
const POLICIES = 60;
/** Of a policy in a second; 10,000 in all. */
const MEAN_DECISIONS = 167;
const MOST_APART = 40;
/** Turns of the loop in which the frame of a second is made and written. */
const TURNS = 4;

const policies = Object.fromEntries(
  Array.from({ length: POLICIES }, (_, index) => [
    `policy-of-some-length-${index}`,
    { rate: 1_000_000, period: '1s' as const },
  ]),
);
const names = Object.keys(policies);
const viewers = Number(process.argv[2]);
const clock = new ManualClock();
const { app, url, taken, sockets } = await startViewed({ policies, clock }, viewers);
const limiter = app.get(RateLimiter);
// Beside those viewers that are more than one.
const bare = await bareSockets(viewers - 1);
let seconds = 0;
let minutes = 0;
let settledBytes = 0;
let tickBytes = 0;

process.on('message', (asked) => {
  void (asked === 'minute' ? minute() : held()).then((answer) => process.send!(answer));
});
process.on('disconnect', () => process.exit(0));
process.send!('ready');

async function minute(): Promise<Minute> {
  const secondsMs: number[] = [];
  const framesMs: number[] = [];
  const bareMs: number[] = [];
  for (let n = 0; n < SECONDS; n++) {
    decide();
    const before = new Map(Array.from(sockets, (socket) => [socket, socket.bytesWritten]));
    const writes = new Writes(sockets);
    const second = cpuMs();
    clock.advance(1000);
    for (let turn = 0; turn < TURNS; turn++) await nextTurn();
    secondsMs.push(cpuMs() - second);
    framesMs.push(writes.cpuMs());
    // A viewer has a second for a frame; here it has as long as it needs, or it would be cut.
    await taken();
    const written = Array.from(before, ([socket, bytes]) => socket.bytesWritten - bytes);
    // In the second in which streams end nothing is written.
    tickBytes = Math.max(...written) || tickBytes;
    decide();
    const bytes = Buffer.alloc(tickBytes, 'x');
    const bareWrites = new Writes(bare);
    for (const socket of bare) socket.write(bytes);
    await nextTurn();
    bareMs.push(bareWrites.cpuMs());
  }
  if (++minutes === SETTLED_MINUTES) settledBytes = await bytesHeld();
  return { secondsMs, framesMs, bareMs };
}

/** From the first write to one of the sockets until Node has done what it does after the last of that turn. */
class Writes {
  private fromMs: number | undefined;
  private toMs = NaN;

  constructor(private readonly sockets: Iterable<Socket>) {
    for (const socket of sockets) {
      socket.write = (...args: unknown[]) => {
        this.begin();
        return Reflect.apply(Socket.prototype.write, socket, args) as boolean;
      };
    }
  }

  cpuMs(): number {
    for (const socket of this.sockets) Reflect.deleteProperty(socket, 'write');
    return this.fromMs === undefined ? 0 : this.toMs - this.fromMs;
  }

  private begin(): void {
    if (this.fromMs !== undefined) return;
    // Each write leaves something for later; what is asked for there comes after all of that.
    process.nextTick(() => process.nextTick(() => (this.toMs = cpuMs())));
    this.fromMs = cpuMs();
  }
}

/** All policies have other figures each second, so that a frame has all of them to tell. */
function decide(): void {
  seconds++;
  for (const [index, policy] of names.entries()) {
    const more = ((index + 7 * seconds) % MOST_APART) - MOST_APART / 2;
    for (let n = 0; n < MEAN_DECISIONS + more; n++) {
      void limiter.tryAcquire({ policy, key: 'k', cost: 1 });
    }
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function held(): Promise<Held> {
  const grownBytes = (await bytesHeld()) - settledBytes;
  const frameBytes = (await (await fetch(`${url}api/state`)).text()).length;
  return { frameBytes, tickBytes, grownBytes };
}

async function bytesHeld(): Promise<number> {
  await taken();
  globalThis.gc!();
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
