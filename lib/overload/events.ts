import { type Refusal, type TierCounts } from './line.js';

/** One measurement of the load. */
export interface LoadSample {
  /** The part of its processor time that this process has used, 0 to 1. */
  readonly cpu: number;
  /** The part of the time in which the event loop was busy, 0 to 1. */
  readonly loop: number;
  /** The mean turn of the event loop. */
  readonly turnMs: number;
  /** The part of its memory that this process uses, 0 to 1. */
  readonly memory: number;
  /** Requests under way. */
  readonly inFlight: number;
  /** The application's own probes, by name. */
  readonly probes: Readonly<Record<string, number>>;
  /** All of it as one number, 0 to 1. */
  readonly score: number;
  /** The part of their limits that adaptive policies have left. */
  readonly factor: number;
}

/** The loop has had no rest for `interval`, or has rested again. */
export interface Standing {
  readonly standing: boolean;
  /** How long the state before has lasted. */
  readonly sinceMs: number;
  readonly waiting: number;
}

/** Refusals of about a second. */
export interface Refused {
  readonly tier: string;
  readonly why: Refusal;
  readonly count: number;
}

/** The events of the line, and what each carries. */
export interface OverloadEvents {
  standing: Standing;
  load: LoadSample;
  refused: Refused;
}

/** Counts of requests at the line, by what became of them. */
export interface OverloadStats {
  /** The loop has had no rest for `interval`. */
  readonly standing: boolean;
  /** Requests in line. */
  readonly waiting: number;
  /** The time of one run, on the average. */
  readonly perMs: number;
  /** Requests under way, streams not counted. */
  readonly inFlight: number;
  /** The last turn of the event loop. */
  readonly turnMs: number;
  /** The part of their limits that adaptive policies have left. */
  readonly factor: number;
  /** The last measurement; none where nobody needs one. */
  readonly load: LoadSample | undefined;
  /** One tier, `all`, where the module has no `tier`. */
  readonly byTier: Readonly<Record<string, Readonly<TierCounts>>>;
  /** How many have waited how long before they ran: classes up to 1, 2, 5 … 1,000 ms, and longer. */
  readonly waits: readonly number[];
  /** The sum of these waits. */
  readonly waitedMs: number;
  /** Requests that passed without the line. */
  readonly exempt: number;
  /** Upgrades to WebSocket, which pass without the line as well. */
  readonly upgrades: number;
  /** Requests whose tier could not be told. */
  readonly tierFaults: number;
  /** Measurements in which a signal was missing, so that its last value was kept. */
  readonly stale: number;
}
