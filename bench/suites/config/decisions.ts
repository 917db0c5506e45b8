import { type ContenderName } from '../../contenders/index.js';
import { atMost } from '../../support/bars.js';
import { contest, type Entrant } from '../../support/contest.js';
import { type SpeedJob } from '../../support/protocol.js';
import { medianRatio } from '../../support/statistics.js';
import { type SuiteContext, type SuiteReport } from '../../support/suite.js';

const CASE = 'a decision after a change';
const METRIC = 'wall ns/decision';
const MOST_TIMES_UNCHANGED = 1.05;
const TARGET_MS = 150;

/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const OPTIONS = { keys: 1, limit: 1_000_000, periodMs: 10 };

const CONTENDERS: Readonly<Record<string, ContenderName>> = {
  'as it was made': 'weir',
  // The same thing twice: how far its ratio is from 1 is how far the other can be trusted.
  'as it was made, again': 'weir',
  'after a change': 'weir-changed',
};

/** What reading limits that can change adds to a decision. */
export async function decisions(context: SuiteContext): Promise<SuiteReport> {
  const entrants = Object.entries(CONTENDERS).map(([label, contender]): Entrant<SpeedJob> => ({
    label,
    job: {
      ...{ kind: 'speed', contender, options: OPTIONS, expect: 'allowed' },
      ...{ inFlight: 1, targetMs: TARGET_MS },
    },
  }));
  const { taken, absences } = await contest(CASE, entrants, context, (contender) =>
    contender.measure(),
  );
  const valuesOf = (label: string): number[] =>
    (taken.get(label) ?? []).map(({ wallNs, decisions: made }) => wallNs / made);
  const baseline = valuesOf('as it was made');
  return {
    series: [...taken.keys()].map((contender) => ({
      ...{ case: CASE, contender, metric: METRIC, values: valuesOf(contender), baseline },
    })),
    absences,
    bars: [
      atMost(
        `${CASE}: ≤ ${MOST_TIMES_UNCHANGED} × one without, ${METRIC}`,
        medianRatio(valuesOf('after a change'), baseline),
        MOST_TIMES_UNCHANGED,
      ),
    ],
  };
}
