import { startRedis } from '../../test/support/redis-server.js';
import { stopAll } from '../../test/support/processes.js';
import { atMost } from '../support/bars.js';
import { type Meter } from '../support/http/meter.js';
import { meterOf, serverContest } from '../support/http/server-contest.js';
import { type Platform, type Variant } from '../support/http/server.js';
import { compare } from '../support/statistics.js';
import { type Bar, type Series, type Suite } from '../support/suite.js';
import { apartIn, twinNotes } from '../support/twins.js';

const PLATFORMS: readonly Platform[] = ['fastify', 'express'];
const VARIANTS: readonly [label: string, variant: Variant][] = [
  ['no limits', 'no limits'],
  ['weir, route without limits', 'weir, route without limits'],
  ['hand-written', 'hand-written'],
  // A twin, the same code again: the distance of its ratio from 1 is the error of the others.
  ['hand-written again', 'hand-written'],
  ['weir', 'weir'],
  ['weir, answers not timed', 'weir, answers not timed'],
  // The cost of a request that passes the line; `weir` is an application without one.
  ['weir with overload', 'weir with overload'],
  // Any client of Redis has its price, because its sockets make others of the process polymorphic.
  ['weir, a Redis client beside it', 'weir, a Redis client beside it'],
  ['weir on redis', 'weir on redis'],
  ['ThrottlerGuard', 'ThrottlerGuard'],
];

export const http: Suite = {
  name: 'http',
  about: 'a Nest application on Fastify and on Express, load from another process',

  async run(context) {
    const redis = await startRedis();
    const meter = meterOf();
    try {
      const series: Series[] = [];
      const load = { variants: VARIANTS, baseline: 'hand-written' };
      for (const platform of PLATFORMS) {
        series.push(...(await serverContest(platform, load, meter, redis.url, context)));
      }
      return {
        series,
        bars: PLATFORMS.flatMap((platform) => barsOf(platform, series, meter)),
        notes: [
          ...twinNotes(series),
          meter.note,
          'The throttler is given a period of 10 ms, because it walks all hits of its period.',
        ],
      };
    } finally {
      await stopAll();
    }
  },
};

/** The highest cost of one, as a multiple of the other. */
const BARS: readonly (readonly [one: string, other: string, bound: number])[] = [
  ['weir', 'hand-written', 1.05],
  ['weir, route without limits', 'no limits', 1.05],
  ['weir on redis', 'weir', 1.05],
  ['weir', 'weir, answers not timed', 1.03],
  ['weir', 'ThrottlerGuard', 0.75],
];

function barsOf(platform: Platform, series: readonly Series[], meter: Meter): Bar[] {
  const valuesOf = (contender: string): readonly number[] =>
    series.find((one) => one.case === platform && one.contender === contender)!.values;
  const apart = apartIn(series, platform, meter.metric);
  return (
    BARS
      // On Express the throttler is a small part of what a request costs.
      .filter(([, other]) => platform === 'fastify' || other !== 'ThrottlerGuard')
      .map(([one, other, bound]) => {
        const promise = `${platform}: ${one} ≤ ${bound} × ${other}, ${meter.metric}`;
        const { ratio } = compare(valuesOf(one), valuesOf(other));
        return atMost(promise, ratio, bound, apart, meter.mostApart);
      })
  );
}
