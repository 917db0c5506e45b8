import { setTimeout as sleep } from 'node:timers/promises';
import { createRateLimiter } from 'nestjs-weir';
import { type RedisProcess, startRedis } from '../../test/support/redis-server.js';
import { atMost, exactly } from '../support/bars.js';
import { underLoad } from '../support/paced-load.js';
import { percentile } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteReport } from '../support/suite.js';

interface OutageCase {
  readonly name: string;
  readonly begin: (server: RedisProcess) => void | Promise<void>;
  readonly end: (server: RedisProcess) => void | Promise<void>;
}

const CASES: readonly OutageCase[] = [
  {
    // Connections break at once.
    name: 'Redis killed and started again',
    begin: (server) => server.kill(),
    end: (server) => server.restart(),
  },
  {
    // Connections stay and nothing answers: only a deadline notices.
    name: 'Redis paused and resumed',
    begin: (server) => server.pause(),
    end: (server) => server.resume(),
  },
];

const LOAD = { perSecond: 2000, durationMs: 4000, graceMs: 1000 };
const OUTAGE_AT_MS = 1000;
const OUTAGE_MS = 1500;
const KEYS = 100;

/** The decision timeout: what a caller may wait at most, on a process that has time for it. */
const MOST_LATENCY_MS = 20;

export const outage: Suite = {
  name: 'outage',
  about: `${LOAD.perSecond} decisions/s while Redis is away for ${OUTAGE_MS / 1000} s`,

  async run(context) {
    const series: Series[] = [];
    const bars: Bar[] = [];
    for (const outageCase of CASES) {
      context.progress(outageCase.name, 'under load');
      const report = await runCase(outageCase);
      series.push(...report.series);
      bars.push(...report.bars);
    }
    return { series, bars };
  },
};

async function runCase(outageCase: OutageCase): Promise<SuiteReport> {
  const server = await startRedis();
  const limiter = createRateLimiter({
    store: { type: 'redis', url: server.url },
    policies: {
      api: { algorithm: 'token-bucket', rate: 1_000_000, period: '1s', burst: 1_000_000 },
    },
  });
  const switches: string[] = [];
  limiter.on('store', ({ state }) => switches.push(state));
  try {
    await limiter.ready();
    // A switch to `up` that belongs to the start is not part of the outage.
    switches.length = 0;
    const [result] = await Promise.all([
      underLoad(LOAD, (n) =>
        limiter.tryAcquire({ policy: 'api', key: `user:${n % KEYS}`, cost: 1 }),
      ),
      interrupt(outageCase, server),
    ]);
    const latency = (share: number): number => percentile(result.latenciesMs, share);
    const answered = result.latenciesMs.length;
    const figures = {
      'latency p50 ms': latency(0.5),
      'latency p99 ms': latency(0.99),
      'latency p99.9 ms': latency(0.999),
      'latency max ms': latency(1),
      'loop delay p99.9 ms': result.loopDelayP999Ms,
      issued: result.issued,
      answered,
      lost: result.issued - answered,
      'switches to down': switches.filter((state) => state === 'down').length,
      'switches to up': switches.filter((state) => state === 'up').length,
    };
    return { series: seriesOf(outageCase.name, figures), bars: barsOf(outageCase.name, figures) };
  } finally {
    await limiter.close();
    await server.stop();
  }
}

async function interrupt(outageCase: OutageCase, server: RedisProcess): Promise<void> {
  await sleep(OUTAGE_AT_MS);
  await outageCase.begin(server);
  await sleep(OUTAGE_MS);
  await outageCase.end(server);
}

function seriesOf(caseName: string, figures: Readonly<Record<string, number>>): Series[] {
  return Object.entries(figures).map(([metric, value]) => ({
    case: caseName,
    contender: 'weir',
    metric,
    values: [value],
  }));
}

function barsOf(
  caseName: string,
  figures: {
    readonly 'latency p99.9 ms': number;
    readonly 'loop delay p99.9 ms': number;
    readonly lost: number;
    readonly 'switches to down': number;
    readonly 'switches to up': number;
  },
): Bar[] {
  const loopDelayMs = figures['loop delay p99.9 ms'];
  const mostMs = MOST_LATENCY_MS + loopDelayMs;
  return [
    atMost(
      `${caseName}: latency p99.9 ≤ ${MOST_LATENCY_MS} ms + ${loopDelayMs.toFixed(1)} ms of loop delay`,
      figures['latency p99.9 ms'],
      mostMs,
    ),
    exactly(`${caseName}: no decision lost`, figures.lost, 0),
    exactly(`${caseName}: one switch to down`, figures['switches to down'], 1),
    exactly(`${caseName}: one switch to up`, figures['switches to up'], 1),
  ];
}
