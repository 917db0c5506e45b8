import { inRounds } from '../rounds.js';
import { type Series, type SuiteContext } from '../suite.js';
import { measureCpu } from './cpu.js';
import { ServerProcess } from './server-process.js';
import { type Platform, type Variant } from './server.js';

export const CPU = 'server CPU µs/request';

export interface ServerLoad {
  readonly variants: readonly (readonly [label: string, variant: Variant])[];
  /** Requests to each server before the first round, and in each round. */
  readonly warmUp: number;
  readonly requests: number;
  /** The label that the others are compared with. */
  readonly baseline: string;
}

/** One server for each variant, all at once, and the load on one after the other in each round. */
export async function serverContest(
  platform: Platform,
  { variants, warmUp, requests, baseline }: ServerLoad,
  redisUrl: string,
  context: SuiteContext,
): Promise<Series[]> {
  const running = new Map<string, ServerProcess>();
  try {
    for (const [label, variant] of variants) {
      context.progress(platform, `preparing ${label}`);
      const server = await ServerProcess.start({ platform, variant, redisUrl });
      running.set(label, server);
      await measureCpu(server, warmUp);
    }
    const taken = await inRounds([...running.keys()], context.rounds, (label, round) => {
      context.progress(platform, `round ${round + 1} of ${context.rounds}, ${label}`);
      return measureCpu(running.get(label)!, requests);
    });
    return Array.from(taken, ([contender, values]) => {
      return { case: platform, contender, metric: CPU, values, baseline: taken.get(baseline) };
    });
  } finally {
    for (const server of running.values()) await server.stop();
  }
}
