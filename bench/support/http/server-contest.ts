import { inRounds } from '../rounds.js';
import { median } from '../statistics.js';
import { type Series, type SuiteContext } from '../suite.js';
import { apart, MOST_APART, MOST_TIMES_ROUNDS } from '../twins.js';
import { measureCpu } from './cpu.js';
import { ServerProcess } from './server-process.js';
import { type Platform, type Variant } from './server.js';

export const CPU = 'server CPU µs/request';

export interface ServerLoad {
  readonly variants: readonly (readonly [label: string, variant: Variant])[];
  /** The label that the others are compared with. */
  readonly baseline: string;
  /** How many times the usual warm-up: the more code there is, the longer V8 goes on optimising. */
  readonly warmUps?: number;
}

/** To each server, before it is measured and in each turn: a request on Express takes five times as long. */
const REQUESTS: Readonly<Record<Platform, { readonly warmUp: number; readonly turn: number }>> = {
  fastify: { warmUp: 30_000, turn: 5000 },
  express: { warmUp: 12_000, turn: 2000 },
};
/** A disturbance of the machine is shorter than all turns of a server together. */
const TURNS = 5;

/**
 * In each round one new server for each variant, all at once, and the load on one after the other
 * in turns. New ones, because two processes of the same code differ: V8 optimises each in another
 * way. So it takes several to know what the code costs, however long one of them is measured.
 */
export async function serverContest(
  platform: Platform,
  load: ServerLoad,
  redisUrl: string,
  context: SuiteContext,
): Promise<Series[]> {
  const taken = new Map(load.variants.map(([label]) => [label, [] as number[]]));
  const isSteady = (): boolean => {
    const figures = Array.from(taken, ([label, values]) => {
      return [label, { values, isUnpaired: true }] as const;
    });
    return !(apart(new Map(figures)) > MOST_APART);
  };
  const most = MOST_TIMES_ROUNDS * context.rounds;
  for (let round = 0; round < most && (round < context.rounds || !isSteady()); round++) {
    context.progress(platform, `round ${round + 1} of ${context.rounds}`);
    const costs = await oneRound(platform, load, redisUrl);
    for (const [label, cost] of costs) taken.get(label)!.push(cost);
  }
  const baseline = taken.get(load.baseline);
  return Array.from(taken, ([contender, values]) => {
    return { case: platform, contender, metric: CPU, values, baseline, isUnpaired: true };
  });
}

async function oneRound(
  platform: Platform,
  { variants, warmUps = 1 }: ServerLoad,
  redisUrl: string,
): Promise<Map<string, number>> {
  const { warmUp, turn } = REQUESTS[platform];
  const running = new Map<string, ServerProcess>();
  try {
    for (const [label, variant] of variants) {
      const server = await ServerProcess.start({ platform, variant, redisUrl });
      running.set(label, server);
      await measureCpu(server, warmUps * warmUp);
    }
    const turns = await inRounds([...running.keys()], TURNS, (label) =>
      measureCpu(running.get(label)!, turn),
    );
    return new Map(Array.from(turns, ([label, costs]) => [label, median(costs)]));
  } finally {
    for (const server of running.values()) await server.stop();
  }
}
