import { ContenderProcess } from './contender-process.js';
import { type Job } from './protocol.js';
import { inRounds } from './rounds.js';
import { type Absence, type SuiteContext } from './suite.js';
import { apart, MOST_APART } from './twins.js';

export interface Entrant<J extends Job> {
  readonly label: string;
  readonly job: J;
}

export interface ContestResult<Measurement> {
  /** By label, one measurement per round. */
  readonly taken: ReadonlyMap<string, readonly Measurement[]>;
  readonly absences: readonly Absence[];
}

/** Starts all entrants of a case one after the other, then measures them in rounds until twins agree by the figure. */
export async function contest<J extends Job, Measurement>(
  caseName: string,
  entrants: readonly Entrant<J>[],
  context: SuiteContext,
  measure: (contender: ContenderProcess<J>) => Promise<Measurement>,
  figureOf: (measurement: Measurement) => number,
  mostApart = MOST_APART,
): Promise<ContestResult<Measurement>> {
  const running = new Map<string, ContenderProcess<J>>();
  const absences: Absence[] = [];
  try {
    for (const { label, job } of entrants) {
      context.progress(caseName, `preparing ${label}`);
      try {
        running.set(label, await ContenderProcess.start(job));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        absences.push({ case: caseName, contender: label, reason });
      }
    }
    const taken = await inRounds(
      [...running.keys()],
      context.rounds,
      (label, round) => {
        context.progress(caseName, `round ${round + 1} of ${context.rounds}, ${label}`);
        return measure(running.get(label)!);
      },
      (soFar) => {
        const figures = Array.from(soFar, ([label, some]) => {
          return [label, { values: some.map(figureOf) }] as const;
        });
        return !(apart(new Map(figures)) > mostApart);
      },
    );
    return { taken, absences };
  } finally {
    for (const contender of running.values()) await contender.stop();
  }
}
