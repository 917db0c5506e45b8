import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Load } from './load.js';
import { type Meter } from './meter.js';
import { ServerProcess } from './server-process.js';
import { type Platform, type ServerOptions } from './server.js';

const METRIC = 'server instructions/request';
/** Twins were 0.1 % apart on Fastify and 0.4 % on Express, on a machine that others kept busy. */
const MOST_APART = 0.01;

/**
 * Enough for V8 to have optimised all that it is going to: of the same code on Redis, two processes were 1.7 % apart after 8,000
 * requests and 0.6 % after 24,000. A request on Express has eight times the instructions.
 */
const WARM_UP: Readonly<Record<Platform, number>> = { fastify: 24_000, express: 5000 };
/** Short, so that in most turns no garbage is collected and no timer is due, however little of a core there is. */
const TURN = 10;
const TURNS = 60;
/** The factor by which a server is slower while it is counted, and so its clocks: 1.8 ms for a request in place of 35 µs. */
const SLOWER = 50;
/** A count is the same whatever else the machine does. Each process takes about 300 MB. */
const SIDE_BY_SIDE = Math.min(4, availableParallelism());

/** Nothing is counted until it is asked for: a server starts, and gets warm, at three times the speed. */
const CALLGRIND = [
  '--tool=callgrind',
  '--instr-atstart=no',
  // Code that V8 compiles may lie where other code was.
  '--smc-check=all-non-file',
  '--callgrind-out-file=/dev/null',
  '--log-file=/dev/null',
];

/**
 * Flags without which two runs of one program differ in V8. Functions are optimised after a third of the usual calls and stay so, because a warm-up
 * is long at this speed; the code that comes out is the same.
 */
const STEADY = [
  '--single-threaded',
  '--predictable-gc-schedule',
  '--no-flush-bytecode',
  '--interrupt-budget=20000',
];

/**
 * Instructions in user space, which callgrind counts. One request after the other on one connection: how many of them a turn of the loop finds
 * would be the machine's doing. The lowest turn counts, since all that comes on top is not the request's: a tick of the clock, a collection of
 * garbage, a function that is optimised late.
 */
export function instructionMeter(valgrind: string): Meter {
  return {
    metric: METRIC,
    note: 'Instructions in user space, without those of the kernel, of collections of garbage, and of what is done by the clock.',
    mostApart: MOST_APART,
    rounds: () => 1,

    async measure(platform, { variants }, redisUrl) {
      const found = new Map(variants.map(([label]) => [label, NaN]));
      const left = variants.entries();
      // Seeds differ, so that twins also tell what the order of a hash table makes of the same code.
      const work = async (): Promise<void> => {
        for (const [seed, [label, variant]] of left) {
          found.set(label, await count(valgrind, { platform, variant, redisUrl }, seed + 1));
        }
      };
      await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
      return found;
    },
  };
}

async function count(valgrind: string, options: ServerOptions, seed: number): Promise<number> {
  const seeds = [`--hash-seed=${seed}`, `--random-seed=${seed}`];
  const server = await ServerProcess.start(options, {
    execPath: valgrind,
    execArgv: [...CALLGRIND, process.execPath, ...STEADY, ...seeds],
    slower: SLOWER,
  });
  const callgrind = new Callgrind(join(dirname(valgrind), 'vgdb'), server.pid);
  const load = await Load.on(server.url, 1);
  try {
    await load.send(WARM_UP[options.platform]);
    await callgrind.begin();
    let lowest = Infinity;
    for (let turn = 0; turn < TURNS; turn++) {
      const before = await callgrind.counted();
      await load.send(TURN);
      lowest = Math.min(lowest, ((await callgrind.counted()) - before) / TURN);
    }
    return lowest;
  } finally {
    load.close();
    await server.stop();
  }
}

/** The counter of a process, which is asked from outside. */
class Callgrind {
  constructor(
    private readonly vgdb: string,
    private readonly pid: number,
  ) {}

  async begin(): Promise<void> {
    await this.tell('instrumentation', 'on');
  }

  /** Instructions since the counter began, on all threads. */
  async counted(): Promise<number> {
    const said = await this.tell('status', 'internal');
    const threads = Array.from(said.matchAll(/^events-\d+: (\d+)/gm), ([, events]) =>
      Number(events),
    );
    if (threads.length === 0) throw new Error(`callgrind does not say what it counted: ${said}`);
    return threads.reduce((sum, events) => sum + events, 0);
  }

  private async tell(...command: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(this.vgdb, [`--pid=${this.pid}`, ...command]);
    return stdout;
  }
}
