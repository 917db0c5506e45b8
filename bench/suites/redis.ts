import { Redis } from 'ioredis';
import { RedisStoreOptions } from 'nestjs-weir';
import { startRedis } from '../../test/support/redis-server.js';
import { type ContenderName } from '../contenders/index.js';
import { atLeast, atMost, below } from '../support/bars.js';
import { contest, type ContestResult, type Entrant } from '../support/contest.js';
import { type SpeedJob, type SpeedMeasurement } from '../support/protocol.js';
import { type RedisUsage, withRedisUsage } from '../support/redis-usage.js';
import { median, medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';
import { apartIn } from '../support/twins.js';

interface RedisCase {
  readonly name: string;
  /** Contenders by label. */
  readonly contenders: Readonly<Record<string, ContenderName>>;
  readonly keys: number;
  readonly limit: number;
  readonly expect: SpeedJob['expect'];
}

type Measurement = SpeedMeasurement & { readonly redis: RedisUsage };
type Metric = keyof typeof METRICS;

const HOUR_MS = 3_600_000;
const IN_FLIGHT = 256;
const LEAST_TIMES_FASTEST_PEER = 2.4;

/** Longer than in memory: the operating system and two processes add their noise. */
const TARGET_MS = 500;

const PEERS = {
  'rate-limiter-flexible': 'redis/rate-limiter-flexible',
  'rate-limit-redis': 'redis/rate-limit-redis',
  '@nest-lab/throttler-storage-redis': 'redis/throttler-storage-redis',
} as const;

const ALLOWED: RedisCase = {
  name: '10,000 keys allowed',
  contenders: {
    weir: 'redis/weir',
    // A twin, the same code again: the distance of its ratio from the other is the error of all ratios.
    'weir again': 'redis/weir',
    ...PEERS,
    // A tuned peer, outside the bars, because its documentation does not mention the tuning.
    'rate-limiter-flexible, auto-pipelined': 'redis/rate-limiter-flexible-pipelined',
  },
  keys: 10_000,
  limit: 1_000_000,
  expect: 'allowed',
};

const FLOOD: RedisCase = {
  name: 'flood of denied requests',
  contenders: {
    weir: 'redis/weir',
    ...PEERS,
    'rate-limiter-flexible, in-memory block': 'redis/rate-limiter-flexible-blocking',
  },
  keys: 1,
  limit: 10,
  expect: 'denied',
};

const METRICS = {
  'decisions/s': ({ decisions, wallNs }: Measurement) => (decisions / wallNs) * 1e9,
  'process CPU µs/decision': ({ decisions, cpuNs }: Measurement) => cpuNs / 1e3 / decisions,
  'Redis CPU µs/decision': ({ decisions, redis }: Measurement) => redis.cpuMicros / decisions,
  'Redis commands/decision': ({ decisions, redis }: Measurement) => redis.commands / decisions,
  'script calls/decision': ({ decisions, redis }: Measurement) => redis.scriptCalls / decisions,
};

export const redis: Suite = {
  name: 'redis',
  about: `decisions shared through Redis, ${IN_FLIGHT} in flight`,

  async run(context) {
    // Peers use commands that the user of the library's own tests may not.
    const server = await startRedis();
    const observer = new Redis(server.adminUrl);
    try {
      const allowed = await runCase(ALLOWED, server.adminUrl, observer, context);
      const flood = await runCase(FLOOD, server.adminUrl, observer, context);
      const peer = fastestPeer(allowed);
      return {
        series: [...seriesOf(ALLOWED, allowed, peer), ...seriesOf(FLOOD, flood, peer)],
        absences: [...allowed.absences, ...flood.absences],
        bars: [...allowedBars(allowed, peer), floodBar(flood)],
        notes: [
          `Ratios are to ${peer}, the fastest of the peers that are set up as they document it.`,
          'Redis counts the call of a script, and each command inside of it.',
        ],
      };
    } finally {
      observer.disconnect();
      await server.stop();
    }
  },
};

function runCase(
  redisCase: RedisCase,
  redisUrl: string,
  observer: Redis,
  context: SuiteContext,
): Promise<ContestResult<Measurement>> {
  const entrants = Object.entries(redisCase.contenders).map(
    ([label, contender], n): Entrant<SpeedJob> => {
      const { keys, limit, expect } = redisCase;
      const prefix = `${redisCase.expect}${n}`;
      const options = { keys, limit, periodMs: HOUR_MS, redisUrl, prefix };
      const inFlight = IN_FLIGHT;
      return {
        label,
        job: { kind: 'speed', contender, options, expect, inFlight, targetMs: TARGET_MS },
      };
    },
  );
  return contest(
    redisCase.name,
    entrants,
    context,
    async (contender) => {
      const { result, usage } = await withRedisUsage(observer, () => contender.measure());
      return { ...result, redis: usage };
    },
    METRICS['decisions/s'],
  );
}

function fastestPeer(result: ContestResult<Measurement>): string {
  const speedOf = (label: string): number => median(valuesOf(result, label, 'decisions/s'));
  return Object.keys(PEERS).reduce((best, label) =>
    speedOf(label) > speedOf(best) ? label : best,
  );
}

function seriesOf(
  redisCase: RedisCase,
  result: ContestResult<Measurement>,
  peer: string,
): Series[] {
  return (Object.keys(METRICS) as Metric[]).flatMap((metric) =>
    [...result.taken.keys()].map((contender) => ({
      case: redisCase.name,
      contender,
      metric,
      values: valuesOf(result, contender, metric),
      baseline: valuesOf(result, peer, metric),
    })),
  );
}

function allowedBars(result: ContestResult<Measurement>, peer: string): Bar[] {
  const series = seriesOf(ALLOWED, result, peer);
  const apartBy = (metric: Metric): number => apartIn(series, ALLOWED.name, metric);
  const ratioTo = (label: string, metric: Metric): number =>
    medianRatio(valuesOf(result, 'weir', metric), valuesOf(result, label, metric));
  const speed = atLeast(
    `weir ≥ ${LEAST_TIMES_FASTEST_PEER} × ${peer}, decisions/s`,
    ratioTo(peer, 'decisions/s'),
    LEAST_TIMES_FASTEST_PEER,
    apartBy('decisions/s'),
  );
  const costs = (['process CPU µs/decision', 'Redis CPU µs/decision'] as const).flatMap((metric) =>
    Object.keys(PEERS).map((label) =>
      below(`weir < 1 × ${label}, ${metric}`, ratioTo(label, metric), 1, apartBy(metric)),
    ),
  );
  return [speed, ...costs];
}

/**
 * A denial is remembered for a second at most, as Redis may have been reset; then whatever is in flight looks again,
 * in as few calls as it fits into. Another one a second tells Redis that the process is there.
 */
function floodBar(result: ContestResult<Measurement>): Bar {
  const taken = result.taken.get('weir') ?? [];
  const perSecond = taken.map(({ redis: { scriptCalls }, wallNs }) => {
    return scriptCalls / Math.ceil(wallNs / 1e9);
  });
  return atMost(
    `weir calls Redis for one round of ${IN_FLIGHT} per begun second of a flood, and once to say that it is there`,
    taken.length === 0 ? NaN : Math.max(...perSecond),
    Math.ceil(IN_FLIGHT / new RedisStoreOptions().maxBatch) + 1,
  );
}

function valuesOf(result: ContestResult<Measurement>, label: string, metric: Metric): number[] {
  return (result.taken.get(label) ?? []).map(METRICS[metric]);
}
