import { type ContenderName } from '../contenders/index.js';
import { contest, type Entrant, type Judging } from './contest.js';
import { type SpeedJob } from './protocol.js';
import { type Series, type SuiteContext } from './suite.js';

export const CPU = 'CPU ns/call';
const WALL = 'wall ns/call';
const TARGET_MS = 150;

export type Contestants = readonly (readonly [label: string, contender: ContenderName])[];

/** Calls that are all allowed, or all denied, one after another: what each costs, beside the baseline. */
export async function measureCalls(
  name: string,
  contestants: Contestants,
  options: SpeedJob['options'],
  baseline: string,
  context: SuiteContext,
  expect: SpeedJob['expect'] = 'allowed',
  load: Pick<SpeedJob, 'inFlight' | 'targetMs'> = { inFlight: 1, targetMs: TARGET_MS },
  judging?: Judging,
): Promise<Series[]> {
  const entrants = contestants.map(([label, contender]): Entrant<SpeedJob> => {
    return { label, job: { kind: 'speed', contender, options, expect, ...load } };
  });
  const { taken, absences } = await contest(
    name,
    entrants,
    context,
    (one) => one.measure(),
    ({ cpuNs, decisions }) => cpuNs / decisions,
    judging,
  );
  if (absences.length > 0) throw new Error(`${absences[0]!.contender}: ${absences[0]!.reason}`);
  return ([CPU, WALL] as const).flatMap((metric) => {
    const field = metric === CPU ? 'cpuNs' : 'wallNs';
    const byLabel = new Map(
      Array.from(taken, ([label, measured]) => [
        label,
        measured.map((one) => one[field] / one.decisions),
      ]),
    );
    return Array.from(byLabel, ([contender, values]) => {
      return { case: name, contender, metric, values, baseline: byLabel.get(baseline) };
    });
  });
}

/** The CPU figures of one contestant of a case. */
export function cpuOf(
  contender: string,
  name: string,
  series: readonly Series[],
): Series['values'] {
  return series.find(
    (one) => one.case === name && one.metric === CPU && one.contender === contender,
  )!.values;
}
