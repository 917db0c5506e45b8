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

/** How a contest is judged. */
export interface Judging {
  /** Twins agree if they are no further apart. */
  readonly mostApart?: number;
  /**
   * Processes begin anew after so many rounds. V8 compiles the same code now and then in another way, for the whole life of a
   * process: a figure of few per cent is of the code only where it is of several processes.
   */
  readonly roundsOfLife?: number;
}

/** Starts all entrants of a case one after the other, then measures them in rounds until twins agree by the figure. */
export async function contest<J extends Job, Measurement>(
  caseName: string,
  entrants: readonly Entrant<J>[],
  context: SuiteContext,
  measure: (contender: ContenderProcess<J>) => Promise<Measurement>,
  figureOf: (measurement: Measurement) => number,
  { mostApart = MOST_APART, roundsOfLife = Infinity }: Judging = {},
): Promise<ContestResult<Measurement>> {
  const jobs = new Map(entrants.map(({ label, job }) => [label, job]));
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
      async (label, round) => {
        context.progress(caseName, `round ${round + 1} of ${context.rounds}, ${label}`);
        if (round > 0 && round % roundsOfLife === 0) {
          await running.get(label)!.stop();
          running.set(label, await ContenderProcess.start(jobs.get(label)!));
        }
        return await measure(running.get(label)!);
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
