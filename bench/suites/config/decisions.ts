import { type ContenderName } from '../../contenders/index.js';
import { atMost } from '../../support/bars.js';
import { contest, type Entrant } from '../../support/contest.js';
import { type SpeedJob } from '../../support/protocol.js';
import { compare, median } from '../../support/statistics.js';
import { type Absence, type SuiteContext, type SuiteReport } from '../../support/suite.js';
import { apartIn } from '../../support/twins.js';

const CASE = 'a decision after a change';
const METRIC = 'CPU ns/decision';
const MOST_TIMES_UNCHANGED = 1.05;
const TARGET_MS = 100;

/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const OPTIONS = { keys: 1, limit: 1_000_000, periodMs: 10 };

const UNCHANGED = 'as it was made';
const CHANGED = 'after a change';
const CONTENDERS: Readonly<Record<string, ContenderName>> = {
  [UNCHANGED]: 'weir',
  // A twin, the same code again: the distance of its ratio from 1 is the error of the other.
  [`${UNCHANGED} again`]: 'weir',
  [CHANGED]: 'weir-changed',
};

/** Measurements of one process. */
const TURNS = 5;

/** The cost that limits which can change add to a decision. */
export async function decisions(context: SuiteContext): Promise<SuiteReport> {
  const entrants = Object.entries(CONTENDERS).map(([label, contender]): Entrant<SpeedJob> => ({
    label,
    job: {
      ...{ kind: 'speed', contender, options: OPTIONS, expect: 'allowed' },
      ...{ inFlight: 1, targetMs: TARGET_MS },
    },
  }));
  const values = new Map(entrants.map(({ label }) => [label, [] as number[]]));
  const absences: Absence[] = [];
  // New processes in each round: two of the same code differ by more than what is looked for.
  for (let round = 0; round < context.rounds && absences.length === 0; round++) {
    const turns = { ...context, rounds: TURNS };
    const result = await contest(
      CASE,
      entrants,
      turns,
      (contender) => contender.measure(),
      // More rounds within one process would not help.
      () => NaN,
    );
    for (const [label, taken] of result.taken) {
      values.get(label)!.push(median(taken.map(({ cpuNs, decisions: made }) => cpuNs / made)));
    }
    absences.push(...result.absences);
  }
  return reportOn(values, absences);
}

function reportOn(
  values: ReadonlyMap<string, readonly number[]>,
  absences: readonly Absence[],
): SuiteReport {
  const baseline = values.get(UNCHANGED)!;
  const changed = compare(values.get(CHANGED)!, baseline);
  const series = Array.from(values, ([contender, one]) => {
    return { case: CASE, contender, metric: METRIC, values: one, baseline, isUnpaired: true };
  });
  return {
    series,
    absences,
    bars: [
      atMost(
        `${CASE}: ≤ ${MOST_TIMES_UNCHANGED} × one without, ${METRIC}`,
        changed.ratio,
        MOST_TIMES_UNCHANGED,
        apartIn(series, CASE, METRIC),
      ),
    ],
    notes: [`${CHANGED}: ratio within ${changed.low.toFixed(3)}…${changed.high.toFixed(3)}.`],
  };
}
