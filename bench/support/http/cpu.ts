import { inRounds } from '../rounds.js';
import { median } from '../statistics.js';
import { MOST_APART } from '../twins.js';
import { Load } from './load.js';
import { type Meter } from './meter.js';
import { ServerProcess } from './server-process.js';
import { type Platform } from './server.js';

/** Requests to each server, before it is measured and in each turn; fewer on Express, where one takes five times as long. */
const REQUESTS: Readonly<Record<Platform, { readonly warmUp: number; readonly turn: number }>> = {
  fastify: { warmUp: 30_000, turn: 5000 },
  express: { warmUp: 12_000, turn: 2000 },
};
/** A disturbance of the machine is shorter than all turns of a server together. */
const TURNS = 5;

/**
 * V8 does its own work in turn with the program: threads that share a collection also wait for
 * each other, and on a machine with few cores that is most of what two runs differ by.
 */
const ONE_THREAD = ['--single-threaded-gc', '--no-concurrent-recompilation'];

/**
 * CPU time, where nothing counts instructions. All servers of a round are there at once, and the load is on one after the
 * other in turns. It takes several rounds, because two processes of the same code differ: V8 optimises each in another way.
 */
export const cpuMeter: Meter = {
  metric: 'server CPU µs/request',
  note: 'CPU time of the server process alone, for want of valgrind, which counts instructions: on a machine that others use it decides little.',
  mostApart: MOST_APART,
  rounds: (asked) => asked,

  async measure(platform, { variants, warmUps = 1 }, redisUrl) {
    const { warmUp, turn } = REQUESTS[platform];
    const running = new Map<string, ServerProcess>();
    try {
      for (const [label, variant] of variants) {
        const server = await ServerProcess.start(
          { platform, variant, redisUrl },
          { execArgv: ONE_THREAD },
        );
        running.set(label, server);
        await cpuMicros(server, warmUps * warmUp);
      }
      const turns = await inRounds([...running.keys()], TURNS, (label) =>
        cpuMicros(running.get(label)!, turn),
      );
      return new Map(Array.from(turns, ([label, costs]) => [label, median(costs)]));
    } finally {
      for (const server of running.values()) await server.stop();
    }
  },
};

/** CPU time of one request. Connections are made anew each time, before the clock starts: servers close idle ones. */
async function cpuMicros(server: ServerProcess, requests: number): Promise<number> {
  const load = await Load.on(server.url);
  try {
    const before = await server.cpuMicros();
    const sent = await load.send(requests);
    return ((await server.cpuMicros()) - before) / sent;
  } finally {
    load.close();
  }
}
