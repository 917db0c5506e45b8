import { type Series, type SuiteContext } from '../suite.js';
import { cpuMeter } from './cpu.js';
import { instructionMeter } from './instructions.js';
import { type Meter, type ServerLoad } from './meter.js';
import { type Platform } from './server.js';

/** Instructions, where the machine has the program that counts them. */
export function meterOf({ VALGRIND_BIN }: NodeJS.ProcessEnv = process.env): Meter {
  return VALGRIND_BIN === undefined ? cpuMeter : instructionMeter(VALGRIND_BIN);
}

/** In each round one new server for each variant. */
export async function serverContest(
  platform: Platform,
  load: ServerLoad,
  meter: Meter,
  redisUrl: string,
  context: SuiteContext,
): Promise<Series[]> {
  const taken = new Map(load.variants.map(([label]) => [label, [] as number[]]));
  const rounds = meter.rounds(context.rounds);
  for (let round = 0; round < rounds; round++) {
    context.progress(platform, `round ${round + 1} of ${rounds}`);
    const costs = await meter.measure(platform, load, redisUrl);
    for (const [label, cost] of costs) taken.get(label)!.push(cost);
  }
  const baseline = taken.get(load.baseline);
  return Array.from(taken, ([contender, values]) => {
    return { case: platform, contender, metric: meter.metric, values, baseline, isUnpaired: true };
  });
}
