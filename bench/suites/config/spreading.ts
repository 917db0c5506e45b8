import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis } from '../../../test/support/redis-server.js';
import { atMost } from '../../support/bars.js';
import { ConfigFleet } from '../../support/config/fleet.js';
import { inRounds } from '../../support/rounds.js';
import { median, medianRatio } from '../../support/statistics.js';
import { type Series, type SuiteContext, type SuiteReport } from '../../support/suite.js';

const PROCESSES = 5;
const PER_ROUND = 20;
const WARM_UPS = 30;
/** Time in which everything that follows a change is over, such as its acknowledgement. */
const PAUSE_MS = 40;
const MOST_TIMES_PUBLISH = 10;

const CASE = `from the call to the last of ${PROCESSES} processes`;
const METRIC = 'ms, median of a round';

/** The time until all processes work with an update, beside that of a plain write, publish and read. */
export async function spreading(context: SuiteContext): Promise<SuiteReport> {
  const server = await startRedis();
  let fleet: ConfigFleet | undefined;
  try {
    context.progress(CASE, 'starting');
    fleet = await ConfigFleet.start(server.url, PROCESSES);
    const taken = await measure(fleet, context);
    return reportOn(taken.publish, taken.update);
  } finally {
    await fleet?.stop();
    await server.stop();
  }
}

interface Taken {
  readonly publish: number[];
  readonly update: number[];
}

async function measure(fleet: ConfigFleet, context: SuiteContext): Promise<Taken> {
  await pairs(fleet, WARM_UPS);
  const rounds = await inRounds(['both'], context.rounds, (_, round) => {
    context.progress(CASE, `round ${round + 1} of ${context.rounds}`);
    return pairs(fleet, PER_ROUND);
  });
  const all = rounds.get('both')!;
  return {
    publish: all.map(({ publish }) => median(publish)),
    update: all.map(({ update }) => median(update)),
  };
}

/** Both are measured in turn: a machine that gets slower is slower for both. */
async function pairs(fleet: ConfigFleet, count: number): Promise<Taken> {
  const taken: Taken = { publish: [], update: [] };
  for (let n = 0; n < count; n++) {
    for (const order of ['publish', 'update'] as const) {
      taken[order].push((await fleet.spread(order)) / 1000);
      await sleep(PAUSE_MS);
    }
  }
  return taken;
}

function reportOn(publish: number[], update: number[]): SuiteReport {
  const series = (contender: string, values: number[]): Series => ({
    ...{ case: CASE, contender, metric: METRIC, values, baseline: publish },
  });
  return {
    series: [series('a publish and read', publish), series('weir update()', update)],
    bars: [
      atMost(
        `${CASE}: update() ≤ ${MOST_TIMES_PUBLISH} × a publish and read`,
        medianRatio(update, publish),
        MOST_TIMES_PUBLISH,
      ),
    ],
  };
}
