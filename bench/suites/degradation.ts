import { startRedis } from '../../test/support/redis-server.js';
import { stopAll } from '../../test/support/processes.js';
import { atMost } from '../support/bars.js';
import { latencyMs } from '../support/http/latency.js';
import { type Meter } from '../support/http/meter.js';
import { meterOf, serverContest } from '../support/http/server-contest.js';
import { type Platform, type Variant } from '../support/http/server.js';
import { compare, median } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';
import { apartIn, twinNotes } from '../support/twins.js';

const PLATFORMS: readonly Platform[] = ['fastify', 'express'];
const NOTHING = 'no-op interceptor';
const VARIANTS: readonly [label: string, variant: Variant][] = [
  [NOTHING, 'no-op interceptor'],
  // A twin, the same code again: the distance of its ratio from 1 is the error of the others.
  [`${NOTHING} again`, 'no-op interceptor'],
  ['@Degrade', 'degrade'],
  ['@Degrade on redis', 'degrade on redis'],
];
const BOUND = 1.05;

/** The level that answers, and how; level 0 is the handler itself. */
const ANSWERS: readonly [label: string, variant: Variant][] = [
  ['level 0, the handler', 'degrade on redis'],
  ['level 1, from Redis', 'degrade on redis, level 1'],
];
const LATENCY = 'latency p99 ms';
/** The bar of level 1 in the specification of this library. */
const LEVEL_1_MS = 10;

export const degradation: Suite = {
  name: 'degradation',
  about: 'a route that answers by itself while caches are warm, with @Degrade and without',

  async run(context) {
    const redis = await startRedis();
    const meter = meterOf();
    try {
      const series: Series[] = [];
      const load = { variants: VARIANTS, baseline: NOTHING, warmUps: 3 };
      for (const platform of PLATFORMS) {
        series.push(...(await serverContest(platform, load, meter, redis.url, context)));
      }
      const waits = await latencies(redis.url, context);
      return {
        series: [...series, ...waits],
        bars: [...barsOf(series, meter), ...waitBars(waits)],
        notes: [...twinNotes(series), meter.note],
      };
    } finally {
      await stopAll();
    }
  },
};

/** Each round has new servers. */
async function latencies(redisUrl: string, context: SuiteContext): Promise<Series[]> {
  const values = new Map(ANSWERS.map(([label]) => [label, [] as number[]]));
  for (let round = 0; round < context.rounds; round++) {
    context.progress('latency', `round ${round + 1} of ${context.rounds}`);
    for (const [label, variant] of ANSWERS) {
      values.get(label)!.push(await latencyMs('fastify', variant, redisUrl));
    }
  }
  const baseline = values.get(ANSWERS[0]![0]);
  return Array.from(values, ([contender, taken]) => {
    return {
      case: 'fastify',
      contender,
      metric: LATENCY,
      values: taken,
      baseline,
      isUnpaired: true,
    };
  });
}

function waitBars(series: readonly Series[]): Bar[] {
  return series
    .filter(({ contender }) => contender.startsWith('level 1'))
    .map(({ contender, values }) =>
      atMost(`${contender}: ${LATENCY} ≤ ${LEVEL_1_MS}`, median(values), LEVEL_1_MS),
    );
}

function barsOf(series: readonly Series[], meter: Meter): Bar[] {
  return (
    series
      // The variant on Redis has no bar: its limiter is at work as well, and the baseline has none.
      .filter(({ contender }) => contender === '@Degrade')
      .map(({ case: platform, contender, values, baseline }) =>
        atMost(
          `${platform}: ${contender} ≤ ${BOUND} × ${NOTHING}, ${meter.metric}`,
          compare(values, baseline!).ratio,
          BOUND,
          apartIn(series, platform, meter.metric),
          meter.mostApart,
        ),
      )
  );
}
