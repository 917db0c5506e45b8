import { atMost, below } from '../support/bars.js';
import { CPU, cpuOf, measureCalls, type Contestants } from '../support/calls.js';
import { medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite } from '../support/suite.js';
import { apartIn } from '../support/twins.js';

/** A placeholder: calls of a resource have neither key nor limit. */
const OPTIONS = { limit: 1, periodMs: 1, keys: 1 };

interface ProtectionCase {
  readonly name: string;
  readonly deadline: boolean;
  readonly mostTimesCockatiel: number;
}

const CASES: readonly ProtectionCase[] = [
  { name: 'breaker + bulkhead', deadline: false, mostTimesCockatiel: 1 },
  { name: 'breaker + bulkhead + deadline', deadline: true, mostTimesCockatiel: 0.2 },
];

const CONTESTANTS: Contestants = [
  ['the work alone', 'protection/bare'],
  ['weir', 'protection/weir'],
  // A twin, the same code again: the distance of its ratio from the other is the error of all ratios.
  ['weir again', 'protection/weir'],
  ['cockatiel', 'protection/cockatiel'],
  ['cockatiel, its cheapest', 'protection/cockatiel-cheapest'],
  ['opossum', 'protection/opossum'],
];

export const protection: Suite = {
  name: 'protection',
  about: 'a call of a protected resource that answers at once',

  async run(context) {
    const series: Series[] = [];
    for (const { name, deadline } of CASES) {
      const options = { ...OPTIONS, deadline };
      series.push(...(await measureCalls(name, CONTESTANTS, options, 'cockatiel', context)));
    }
    return {
      series,
      bars: CASES.flatMap((one) => barsOf(one, series)),
      notes: [
        'weir also watches for slots that are held for long, and counts; cockatiel and opossum have no longest wait.',
        "cockatiel's cheapest: failures in a row, and a timeout that does not answer its caller in time.",
      ],
    };
  },
};

function barsOf({ name, mostTimesCockatiel }: ProtectionCase, series: readonly Series[]): Bar[] {
  const times = (other: string): number =>
    medianRatio(cpuOf('weir', name, series), cpuOf(other, name, series));
  const apart = apartIn(series, name, CPU);
  const againstCockatiel = ['cockatiel', 'cockatiel, its cheapest'].map((other) =>
    atMost(
      `${name}: weir ≤ ${mostTimesCockatiel} × ${other}, ${CPU}`,
      times(other),
      mostTimesCockatiel,
      apart,
    ),
  );
  return [
    ...againstCockatiel,
    below(`${name}: weir < opossum, ${CPU}`, times('opossum'), 1, apart),
  ];
}
