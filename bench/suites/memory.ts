import { type ContenderOptions } from '../contenders/contender.js';
import { type ContenderName } from '../contenders/index.js';
import { atMost } from '../support/bars.js';
import { contest, type Entrant } from '../support/contest.js';
import { type SpeedJob } from '../support/protocol.js';
import { medianRatio } from '../support/statistics.js';
import {
  type Absence,
  type Bar,
  type Series,
  type Suite,
  type SuiteContext,
} from '../support/suite.js';
import { apartIn } from '../support/twins.js';

interface MemoryCase {
  readonly name: string;
  readonly keys: number;
  readonly expect: SpeedJob['expect'];
  readonly limit: number;
  readonly periodMs: number;
  /** Duration of one measurement. */
  readonly targetMs: number;
  readonly mostTimesFloor: number;
}

interface Contestant {
  readonly label: string;
  readonly contender: ContenderName;
  readonly algorithm?: ContenderOptions['algorithm'];
  readonly hotKeyOnly?: true;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * One limit per case, the same for all. What it must look like follows from the traffic.
 *
 * - Allowed at tens of millions per second: a hundred million per second. Its period is 10 ms and
 *   not a second because @nestjs/throttler keeps every hit of the period in an array and walks it at
 *   each decision; in a second it would collect ten times as many and be ten times as slow.
 * - Denied: a hundred per hour, an everyday limit. The throttler then walks a hundred hits.
 * - Many keys: no key may run out, and none may recover between two rounds, since whoever sweeps
 *   drops recovered keys, and the keys are to be there before the clock starts. Hence a long period;
 *   24 days is the longest that a Node timer can hold, and rate-limiter-flexible starts one for each
 *   key. The throttler walks about a hundred hits with 10,000 keys, a handful with 1,000,000.
 */
const HOT_ALLOWED = { limit: 1_000_000, periodMs: 10 };
const HOT_DENIED = { limit: 100, periodMs: HOUR_MS };
const MANY_KEYS = { limit: 100_000, periodMs: 24 * DAY_MS };

const SHORT = { targetMs: 150 };

const CASES: readonly MemoryCase[] = [
  {
    name: 'hot key allowed',
    keys: 1,
    expect: 'allowed',
    ...HOT_ALLOWED,
    ...SHORT,
    mostTimesFloor: 1.3,
  },
  {
    name: 'hot key denied',
    keys: 1,
    expect: 'denied',
    ...HOT_DENIED,
    ...SHORT,
    mostTimesFloor: 1.3,
  },
  {
    name: '10,000 keys',
    keys: 10_000,
    expect: 'allowed',
    ...MANY_KEYS,
    ...SHORT,
    mostTimesFloor: 1.2,
  },
  // A longer measurement: 150 ms would visit a tenth of the keys, and each round another tenth.
  {
    name: '1,000,000 keys',
    keys: 1_000_000,
    expect: 'allowed',
    ...MANY_KEYS,
    targetMs: 500,
    mostTimesFloor: 1.5,
  },
];

const CONTESTANTS: readonly Contestant[] = [
  { label: 'floor', contender: 'floor' },
  // A twin, the same code again: the distance of its ratio from 1 is the error of the others.
  { label: 'floor again', contender: 'floor' },
  { label: 'weir', contender: 'weir' },
  { label: 'weir, two policies', contender: 'weir-list', hotKeyOnly: true },
  { label: 'weir leaky-bucket', contender: 'weir', algorithm: 'leaky-bucket', hotKeyOnly: true },
  {
    label: 'weir sliding-window',
    contender: 'weir',
    algorithm: 'sliding-window',
    hotKeyOnly: true,
  },
  { label: 'limiter', contender: 'limiter' },
  { label: 'rate-limiter-flexible', contender: 'rate-limiter-flexible' },
  { label: '@nestjs/throttler', contender: 'nestjs-throttler' },
  { label: 'express-rate-limit', contender: 'express-rate-limit' },
  { label: '@fastify/rate-limit', contender: 'fastify-rate-limit' },
];

const MOST_TIMES_ONE = 3;
const WALL = 'wall ns/decision';
const CPU = 'CPU ns/decision';

export const memory: Suite = {
  name: 'memory',
  about: 'a decision in process, against the floor and against peers',

  async run(context) {
    const series: Series[] = [];
    const absences: Absence[] = [];
    for (const memoryCase of CASES) {
      const result = await runCase(memoryCase, context);
      series.push(...result.series);
      absences.push(...result.absences);
    }
    return {
      series,
      absences,
      bars: [...CASES.map((one) => floorBar(one, series)), ...listBars(series)],
      notes: [
        'Whoever answers with a promise is awaited, one at a time: nothing here ever waits, so more in flight would only add bookkeeping.',
        'limiter tells whether, but not how much is left; express-rate-limit writes no headers here.',
      ],
    };
  },
};

async function runCase(
  memoryCase: MemoryCase,
  context: SuiteContext,
): Promise<{ series: Series[]; absences: readonly Absence[] }> {
  const entrants = CONTESTANTS.filter(({ hotKeyOnly }) => !hotKeyOnly || memoryCase.keys === 1);
  const { taken, absences } = await contest(
    memoryCase.name,
    entrants.map((contestant) => entrantOf(memoryCase, contestant)),
    context,
    (contender) => contender.measure(),
    ({ wallNs, decisions }) => wallNs / decisions,
  );
  const figures = {
    [WALL]: new Map<string, number[]>(),
    [CPU]: new Map<string, number[]>(),
  };
  for (const [label, measurements] of taken) {
    figures[WALL].set(
      label,
      measurements.map(({ wallNs, decisions }) => wallNs / decisions),
    );
    figures[CPU].set(
      label,
      measurements.map(({ cpuNs, decisions }) => cpuNs / decisions),
    );
  }
  const series = Object.entries(figures).flatMap(([metric, byLabel]) =>
    [...byLabel].map(([contender, values]) => ({
      case: memoryCase.name,
      contender,
      metric,
      values,
      baseline: byLabel.get('floor'),
    })),
  );
  return { series, absences };
}

function entrantOf(memoryCase: MemoryCase, contestant: Contestant): Entrant<SpeedJob> {
  const { keys, limit, periodMs, expect, targetMs } = memoryCase;
  const { label, contender, algorithm } = contestant;
  const options = { keys, limit, periodMs, algorithm };
  return { label, job: { kind: 'speed', contender, options, expect, inFlight: 1, targetMs } };
}

/** Two policies on a request, beside one. */
function listBars(series: readonly Series[]): Bar[] {
  return CASES.filter(({ keys }) => keys === 1).map(({ name }) => {
    const valuesOf = (label: string): readonly number[] =>
      series.find((one) => one.case === name && one.metric === WALL && one.contender === label)
        ?.values ?? [];
    const promise = `${name}: two policies ≤ ${MOST_TIMES_ONE} × one, ${WALL}`;
    const ratio = medianRatio(valuesOf('weir, two policies'), valuesOf('weir'));
    return atMost(promise, ratio, MOST_TIMES_ONE, apartIn(series, name, WALL));
  });
}

function floorBar({ name, mostTimesFloor }: MemoryCase, series: readonly Series[]): Bar {
  const weir = series.find(
    (one) => one.case === name && one.metric === WALL && one.contender === 'weir',
  );
  const ratio = weir?.baseline === undefined ? NaN : medianRatio(weir.values, weir.baseline);
  const promise = `${name}: weir ≤ ${mostTimesFloor} × floor, ${WALL}`;
  return atMost(promise, ratio, mostTimesFloor, apartIn(series, name, WALL));
}
