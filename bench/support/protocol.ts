import { type ContenderOptions } from '../contenders/contender.js';
import { type ContenderName } from '../contenders/index.js';

// The messages between the process that runs the suites and the processes that hold the contenders.

/** The job to make decisions, again and again, and to say how long it took. */
export interface SpeedJob {
  readonly kind: 'speed';
  readonly contender: ContenderName;
  readonly options: ContenderOptions;
  readonly expect: 'allowed' | 'denied';
  /** Callers that wait at the same time; of no meaning to a contender that answers at once. */
  readonly inFlight: number;
  /** Target duration of one measurement. */
  readonly targetMs: number;
}

/** The job to hold so many keys, and to say how many bytes they take. */
export interface FootprintJob {
  readonly kind: 'footprint';
  readonly contender: ContenderName;
  readonly options: ContenderOptions;
}

export type Job = SpeedJob | FootprintJob;

export interface SpeedMeasurement {
  readonly decisions: number;
  readonly wallNs: number;
  readonly cpuNs: number;
}

export interface FootprintMeasurement {
  readonly bytesPerKey: number;
}

export interface MeasurementOf {
  speed: SpeedMeasurement;
  footprint: FootprintMeasurement;
}

export type Request = { readonly ask: 'prepare'; readonly job: Job } | { readonly ask: 'measure' };

export type Reply =
  | { readonly reply: 'done'; readonly measurement?: SpeedMeasurement | FootprintMeasurement }
  | { readonly reply: 'failed'; readonly reason: string };
