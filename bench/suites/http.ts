import { startRedis } from '../../test/support/redis-server.js';
import { stopAll } from '../../test/support/processes.js';
import { atMost } from '../support/bars.js';
import { CPU, serverContest } from '../support/http/server-contest.js';
import { type Platform, type Variant } from '../support/http/server.js';
import { medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite } from '../support/suite.js';

const PLATFORMS: readonly Platform[] = ['fastify', 'express'];
const VARIANTS: readonly [label: string, variant: Variant][] = [
  ['no limits', 'no limits'],
  ['weir, route without limits', 'weir, route without limits'],
  ['hand-written', 'hand-written'],
  // The same thing twice: how far its ratio is from 1 is how far the others can be trusted.
  ['hand-written again', 'hand-written'],
  ['weir', 'weir'],
  // Any client of Redis has its price, because its sockets make others of the process polymorphic.
  ['weir, a Redis client beside it', 'weir, a Redis client beside it'],
  ['weir on redis', 'weir on redis'],
  ['ThrottlerGuard', 'ThrottlerGuard'],
];
/** Enough that what a round begins with, its connections and the first collection, is no part of it. */
const REQUESTS = 30_000;
const WARM_UP = 30_000;
/** What two runs of the same thing may differ by on a quiet machine. */
const NOISE = 0.05;

export const http: Suite = {
  name: 'http',
  about: 'a Nest application on Fastify and on Express, load from another process',

  async run(context) {
    const redis = await startRedis();
    try {
      const series: Series[] = [];
      const load = {
        variants: VARIANTS,
        warmUp: WARM_UP,
        requests: REQUESTS,
        baseline: 'hand-written',
      };
      for (const platform of PLATFORMS) {
        series.push(...(await serverContest(platform, load, redis.url, context)));
      }
      return {
        series,
        bars: PLATFORMS.flatMap((platform) => barsOf(platform, series)),
        notes: [
          'CPU time of the server process alone. The throttler is given a period of 10 ms, because it walks all hits of its period.',
        ],
      };
    } finally {
      await stopAll();
    }
  },
};

function barsOf(platform: Platform, series: readonly Series[]): Bar[] {
  const valuesOf = (contender: string): readonly number[] =>
    series.find((one) => one.case === platform && one.contender === contender)!.values;
  const ratio = (one: string, other: string): number => medianRatio(valuesOf(one), valuesOf(other));
  const noise = Math.max(NOISE, Math.abs(1 - ratio('hand-written again', 'hand-written')));
  const bar = (one: string, other: string, bound: number): Bar =>
    atMost(
      `${platform}: ${one} ≤ ${bound.toFixed(2)} × ${other}, ${CPU}`,
      ratio(one, other),
      bound,
    );
  return [
    bar('weir', 'hand-written', 1 + noise),
    bar('weir, route without limits', 'no limits', 1 + noise),
    bar('weir on redis', 'weir', 1.05),
    ...(platform === 'fastify' ? [bar('weir', 'ThrottlerGuard', 0.75)] : []),
  ];
}
