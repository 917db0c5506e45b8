/** The run that a suite is part of. */
export interface SuiteContext {
  readonly rounds: number;
  /** Says what is being measured now; a long silence looks like a hang. */
  progress(caseName: string, step: string): void;
}

/** One figure of one contender, taken once per round. */
export interface Series {
  readonly case: string;
  readonly contender: string;
  readonly metric: string;
  readonly values: readonly number[];
  /** The same figure of the floor or baseline, round by round; without it there is no ratio. */
  readonly baseline?: readonly number[];
  /** The figures are those of other processes in each round: no two of a round belong together. */
  readonly isUnpaired?: boolean;
}

/** A contender that could not take part, and why: a gap in a table must explain itself. */
export interface Absence {
  readonly case: string;
  readonly contender: string;
  readonly reason: string;
}

export type Verdict = 'ok' | 'missed' | 'undecided';

/** Something the library promises: a figure that is the same in every run. */
export interface Bar {
  readonly promise: string;
  readonly found: number;
  readonly verdict: Verdict;
  /** The distance of twins, where it leaves the bar undecided. */
  readonly apart?: number;
}

export interface SuiteReport {
  readonly series: readonly Series[];
  readonly absences?: readonly Absence[];
  readonly bars: readonly Bar[];
  /** Notes to the table: contenders that were left out, and all that the numbers do not say. */
  readonly notes?: readonly string[];
}

export interface Suite {
  readonly name: string;
  readonly about: string;
  run(context: SuiteContext): Promise<SuiteReport>;
}
