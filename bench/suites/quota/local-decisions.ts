import { type ContenderName } from '../../contenders/index.js';
import { atMost } from '../../support/bars.js';
import { contest, type Entrant } from '../../support/contest.js';
import { type SpeedJob } from '../../support/protocol.js';
import { medianRatio } from '../../support/statistics.js';
import { type SuiteContext, type SuiteReport } from '../../support/suite.js';
import { apartIn } from '../../support/twins.js';

const CASE = 'a decision in process';
const METRIC = 'wall ns/decision';
const MOST_TIMES_FLOOR = 1.5;
const TARGET_MS = 150;

/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const OPTIONS = { keys: 1, limit: 1_000_000, periodMs: 10 };

const CONTENDERS: Readonly<Record<string, ContenderName>> = {
  floor: 'floor',
  // A twin, the same code again: the distance of its ratio from 1 is the error of the others.
  'floor again': 'floor',
  'weir quota': 'weir-quota',
  'weir policy': 'weir',
};

export async function localDecisions(context: SuiteContext): Promise<SuiteReport> {
  const entrants = Object.entries(CONTENDERS).map(([label, contender]): Entrant<SpeedJob> => ({
    label,
    job: {
      ...{ kind: 'speed', contender, options: OPTIONS, expect: 'allowed' },
      ...{ inFlight: 1, targetMs: TARGET_MS },
    },
  }));
  const { taken, absences } = await contest(
    CASE,
    entrants,
    context,
    (contender) => contender.measure(),
    ({ wallNs, decisions }) => wallNs / decisions,
  );
  const valuesOf = (label: string): number[] =>
    (taken.get(label) ?? []).map(({ wallNs, decisions }) => wallNs / decisions);
  const baseline = valuesOf('floor');
  const series = [...taken.keys()].map((contender) => {
    return { case: CASE, contender, metric: METRIC, values: valuesOf(contender), baseline };
  });
  return {
    series,
    absences,
    bars: [
      atMost(
        `${CASE}: weir quota ≤ ${MOST_TIMES_FLOOR} × floor, ${METRIC}`,
        medianRatio(valuesOf('weir quota'), baseline),
        MOST_TIMES_FLOOR,
        apartIn(series, CASE, METRIC),
      ),
    ],
  };
}
