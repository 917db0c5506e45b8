import { type ContenderName } from '../contenders/index.js';
import { atMost, below } from '../support/bars.js';
import { contest, type Entrant } from '../support/contest.js';
import { type SpeedJob } from '../support/protocol.js';
import { medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';

/** Of no meaning here: what is called has no key and no limit. */
const OPTIONS = { limit: 1, periodMs: 1, keys: 1 };
const TARGET_MS = 150;
const CPU = 'CPU ns/call';
const WALL = 'wall ns/call';

interface ProtectionCase {
  readonly name: string;
  readonly deadline: boolean;
  readonly mostTimesCockatiel: number;
}

const CASES: readonly ProtectionCase[] = [
  { name: 'breaker + bulkhead', deadline: false, mostTimesCockatiel: 1 },
  { name: 'breaker + bulkhead + deadline', deadline: true, mostTimesCockatiel: 0.2 },
];

const CONTESTANTS: readonly [label: string, contender: ContenderName][] = [
  ['the work alone', 'protection/bare'],
  ['weir', 'protection/weir'],
  // The same thing twice: how far its ratio is from the other is how far ratios can be trusted.
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
    for (const one of CASES) series.push(...(await runCase(one, context)));
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

async function runCase(
  { name, deadline }: ProtectionCase,
  context: SuiteContext,
): Promise<Series[]> {
  const entrants = CONTESTANTS.map(([label, contender]): Entrant<SpeedJob> => {
    const options = { ...OPTIONS, deadline };
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
    const baseline = byLabel.get('cockatiel');
    return Array.from(byLabel, ([contender, values]) => {
      return { case: name, contender, metric, values, baseline };
    });
  });
}

function barsOf({ name, mostTimesCockatiel }: ProtectionCase, series: readonly Series[]): Bar[] {
  const valuesOf = (contender: string): readonly number[] =>
    series.find((one) => one.case === name && one.metric === CPU && one.contender === contender)!
      .values;
  const times = (other: string): number => medianRatio(valuesOf('weir'), valuesOf(other));
  const againstCockatiel = ['cockatiel', 'cockatiel, its cheapest'].map((other) =>
    atMost(
      `${name}: weir ≤ ${mostTimesCockatiel} × ${other}, ${CPU}`,
      times(other),
      mostTimesCockatiel,
    ),
  );
  return [...againstCockatiel, below(`${name}: weir < opossum, ${CPU}`, times('opossum'), 1)];
}
