import { atMost } from '../support/bars.js';
import { CPU, cpuOf, measureCalls, type Contestants } from '../support/calls.js';
import { medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite } from '../support/suite.js';
import { apartIn } from '../support/twins.js';

/** As for a hot key in memory: never denied, and the throttler has not too many hits to walk. */
const LIMIT = { limit: 1_000_000, periodMs: 10, keys: 1 };
const MOST_TIMES_THROTTLER = 0.25;

const CASES = [
  { name: 'with headers', headers: true, mostTimesHandWritten: 1.3 },
  { name: 'without headers', headers: false, mostTimesHandWritten: 1.15 },
] as const;

const CONTESTANTS: Contestants = [
  ['hand-written', 'guard/hand-written'],
  // A twin, the same code again: the distance of its ratio from 1 is the error of the others.
  ['hand-written again', 'guard/hand-written'],
  ['weir', 'guard/weir'],
  ['ThrottlerGuard', 'guard/throttler'],
];

export const guard: Suite = {
  name: 'guard',
  about: 'the guard alone, called with the contexts of a real request',

  async run(context) {
    const series: Series[] = [];
    for (const { name, headers } of CASES) {
      const options = { ...LIMIT, headers };
      series.push(...(await measureCalls(name, CONTESTANTS, options, 'hand-written', context)));
    }
    return {
      series,
      absences: [],
      bars: CASES.flatMap((one) => barsOf(one, series)),
      notes: ['Each call has a request object of its own; making it is part of every figure.'],
    };
  },
};

function barsOf(
  { name, mostTimesHandWritten }: (typeof CASES)[number],
  series: readonly Series[],
): Bar[] {
  const against = (other: string, bound: number): Bar =>
    atMost(
      `${name}: weir ≤ ${bound} × ${other}, ${CPU}`,
      medianRatio(cpuOf('weir', name, series), cpuOf(other, name, series)),
      bound,
      apartIn(series, name, CPU),
    );
  return [
    against('hand-written', mostTimesHandWritten),
    against('ThrottlerGuard', MOST_TIMES_THROTTLER),
  ];
}
