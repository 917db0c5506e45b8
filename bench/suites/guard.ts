import { type ContenderName } from '../contenders/index.js';
import { atMost } from '../support/bars.js';
import { contest, type Entrant } from '../support/contest.js';
import { type SpeedJob } from '../support/protocol.js';
import { medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';

/** As for a hot key in memory: never denied, and the throttler has not too many hits to walk. */
const LIMIT = { limit: 1_000_000, periodMs: 10, keys: 1 };
const TARGET_MS = 150;
const CPU = 'CPU ns/call';
const WALL = 'wall ns/call';
const MOST_TIMES_HAND_WRITTEN = 1.3;
const MOST_TIMES_THROTTLER = 0.25;

const CASES = [
  { name: 'with headers', headers: true },
  { name: 'without headers', headers: false },
] as const;

const CONTESTANTS: readonly [label: string, contender: ContenderName][] = [
  ['hand-written', 'guard/hand-written'],
  // The same thing twice: how far its ratio is from 1 is how far the others can be trusted.
  ['hand-written again', 'guard/hand-written'],
  ['weir', 'guard/weir'],
  ['ThrottlerGuard', 'guard/throttler'],
];

export const guard: Suite = {
  name: 'guard',
  about: 'the guard alone, called with the contexts of a real request',

  async run(context) {
    const series: Series[] = [];
    for (const { name, headers } of CASES) series.push(...(await runCase(name, headers, context)));
    return {
      series,
      absences: [],
      bars: CASES.flatMap(({ name }) => barsOf(name, series)),
      notes: ['Each call has a request object of its own; making it is part of every figure.'],
    };
  },
};

async function runCase(name: string, headers: boolean, context: SuiteContext): Promise<Series[]> {
  const entrants = CONTESTANTS.map(([label, contender]): Entrant<SpeedJob> => {
    const options = { ...LIMIT, headers };
    const job = { kind: 'speed', contender, options, expect: 'allowed', inFlight: 1 } as const;
    return { label, job: { ...job, targetMs: TARGET_MS } };
  });
  const { taken, absences } = await contest(name, entrants, context, (one) => one.measure());
  if (absences.length > 0) throw new Error(`${absences[0]!.contender}: ${absences[0]!.reason}`);
  return [CPU, WALL].flatMap((metric) => {
    const byLabel = new Map(
      Array.from(taken, ([label, measured]) => [
        label,
        measured.map(
          ({ cpuNs, wallNs, decisions }) => (metric === CPU ? cpuNs : wallNs) / decisions,
        ),
      ]),
    );
    const baseline = byLabel.get('hand-written');
    return Array.from(byLabel, ([contender, values]) => {
      return { case: name, contender, metric, values, baseline };
    });
  });
}

function barsOf(name: string, series: readonly Series[]): Bar[] {
  const valuesOf = (contender: string): readonly number[] =>
    series.find((one) => one.case === name && one.metric === CPU && one.contender === contender)!
      .values;
  const against = (other: string, bound: number): Bar =>
    atMost(
      `${name}: weir ≤ ${bound} × ${other}, ${CPU}`,
      medianRatio(valuesOf('weir'), valuesOf(other)),
      bound,
    );
  return [
    against('hand-written', MOST_TIMES_HAND_WRITTEN),
    against('ThrottlerGuard', MOST_TIMES_THROTTLER),
  ];
}
