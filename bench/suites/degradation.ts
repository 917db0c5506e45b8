import { startRedis } from '../../test/support/redis-server.js';
import { stopAll } from '../../test/support/processes.js';
import { atMost } from '../support/bars.js';
import { CPU, serverContest } from '../support/http/server-contest.js';
import { type Platform, type Variant } from '../support/http/server.js';
import { compare } from '../support/statistics.js';
import { type Bar, type Series, type Suite } from '../support/suite.js';

const PLATFORMS: readonly Platform[] = ['fastify', 'express'];
const NOTHING = 'no-op interceptor';
const VARIANTS: readonly [label: string, variant: Variant][] = [
  [NOTHING, 'no-op interceptor'],
  // The same thing twice: how far its ratio is from 1 is how far the others can be trusted.
  [`${NOTHING} again`, 'no-op interceptor'],
  ['@Degrade', 'degrade'],
  ['@Degrade on redis', 'degrade on redis'],
];
const BOUND = 1.05;

export const degradation: Suite = {
  name: 'degradation',
  about: 'a route that answers by itself while caches are warm, with @Degrade and without',

  async run(context) {
    const redis = await startRedis();
    try {
      const series: Series[] = [];
      const load = { variants: VARIANTS, baseline: NOTHING, warmUps: 3 };
      for (const platform of PLATFORMS) {
        series.push(...(await serverContest(platform, load, redis.url, context)));
      }
      return { series, bars: barsOf(series), notes: series.flatMap(intervalOf) };
    } finally {
      await stopAll();
    }
  },
};

function barsOf(series: readonly Series[]): Bar[] {
  return (
    series
      // On Redis the limiter is at work as well, which the one without does not have.
      .filter(({ contender }) => contender === '@Degrade')
      .map(({ case: platform, contender, values, baseline }) =>
        atMost(
          `${platform}: ${contender} ≤ ${BOUND} × ${NOTHING}, ${CPU}`,
          compare(values, baseline!).ratio,
          BOUND,
        ),
      )
  );
}

/** One line for each ratio: where it lies nineteen times out of twenty. */
function intervalOf({ case: platform, contender, values, baseline }: Series): string[] {
  if (contender === NOTHING) return [];
  const { low, high } = compare(values, baseline!);
  return [`${platform}, ${contender}: ratio within ${low.toFixed(3)}…${high.toFixed(3)}.`];
}
