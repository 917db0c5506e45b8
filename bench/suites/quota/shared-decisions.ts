import { type Redis } from 'ioredis';
import { type ContenderName } from '../../contenders/index.js';
import { atLeast } from '../../support/bars.js';
import { contest, type Entrant } from '../../support/contest.js';
import { type SpeedJob, type SpeedMeasurement } from '../../support/protocol.js';
import { type RedisUsage, withRedisUsage } from '../../support/redis-usage.js';
import { median, medianRatio } from '../../support/statistics.js';
import { type SuiteContext, type SuiteReport } from '../../support/suite.js';

/** The Redis that a part of the suite runs on, and a connection to look at it. */
export interface OnRedis {
  readonly url: string;
  readonly observer: Redis;
}

type Measurement = SpeedMeasurement & { readonly redis: RedisUsage };

const IN_FLIGHT = 256;
const CASE = `a limit shared through Redis, ${IN_FLIGHT} in flight`;
const LEAST_TIMES_FASTEST_PEER = 50;
const TARGET_MS = 300;
const HOUR_MS = 3_600_000;

/** Never reached, neither in an hour nor in the second that a quota is counted by. */
const LIMIT = 100_000_000 * 3600;

const WEIR = 'weir quota';
const PEERS: Readonly<Record<string, ContenderName>> = {
  'rate-limit-redis': 'redis/rate-limit-redis',
  'rate-limiter-flexible': 'redis/rate-limiter-flexible',
};

const METRICS = {
  'decisions/s': ({ decisions, wallNs }: Measurement) => (decisions / wallNs) * 1e9,
  'Redis CPU µs/1,000 decisions': ({ decisions, redis }: Measurement) =>
    (redis.cpuMicros * 1000) / decisions,
  'script calls/1,000 decisions': ({ decisions, redis }: Measurement) =>
    (redis.scriptCalls * 1000) / decisions,
};

export async function sharedDecisions(
  { url, observer }: OnRedis,
  context: SuiteContext,
): Promise<SuiteReport> {
  const contenders: [string, ContenderName][] = [
    [WEIR, 'redis/weir-quota'],
    ...Object.entries(PEERS),
  ];
  const entrants = contenders.map(([label, contender], n): Entrant<SpeedJob> => ({
    label,
    job: {
      ...{ kind: 'speed', contender, expect: 'allowed', inFlight: IN_FLIGHT },
      options: { keys: 1, limit: LIMIT, periodMs: HOUR_MS, redisUrl: url, prefix: `shared${n}` },
      targetMs: TARGET_MS,
    },
  }));
  const { taken, absences } = await contest(
    CASE,
    entrants,
    context,
    async (contender) => {
      const { result, usage } = await withRedisUsage(observer, () => contender.measure());
      return { ...result, redis: usage };
    },
    METRICS['decisions/s'],
  );
  const valuesOf = (label: string, metric: keyof typeof METRICS): number[] =>
    (taken.get(label) ?? []).map(METRICS[metric]);
  const speedOf = (label: string): number => median(valuesOf(label, 'decisions/s'));
  const peer = Object.keys(PEERS).reduce((best, label) =>
    speedOf(label) > speedOf(best) ? label : best,
  );
  const series = (Object.keys(METRICS) as (keyof typeof METRICS)[]).flatMap((metric) =>
    [...taken.keys()].map((contender) => ({
      ...{ case: CASE, contender, metric, values: valuesOf(contender, metric) },
      baseline: valuesOf(peer, metric),
    })),
  );
  const ratio = medianRatio(valuesOf(WEIR, 'decisions/s'), valuesOf(peer, 'decisions/s'));
  return {
    series,
    absences,
    bars: [
      atLeast(
        `weir quota ≥ ${LEAST_TIMES_FASTEST_PEER} × ${peer}, decisions/s`,
        ratio,
        LEAST_TIMES_FASTEST_PEER,
      ),
    ],
    notes: [`Ratios are to ${peer}, the faster of the two peers that take part here.`],
  };
}
