import { type Platform, type Variant } from './server.js';

export interface ServerLoad {
  readonly variants: readonly (readonly [label: string, variant: Variant])[];
  /** The label that the others are compared with. */
  readonly baseline: string;
  /** How many times the usual warm-up: the more code there is, the longer V8 goes on optimising. */
  readonly warmUps?: number;
}

/** How the cost of a request to a server is measured. */
export interface Meter {
  readonly metric: string;
  /** The meaning of the figures, in a sentence below the table. */
  readonly note: string;
  /** The distance of twins above which a bar is undecided. */
  readonly mostApart: number;
  /** The number of rounds of new servers, for the number that was asked for. */
  rounds(asked: number): number;
  /** The cost of a request by label, of a new server for each variant. */
  measure(platform: Platform, load: ServerLoad, redisUrl: string): Promise<Map<string, number>>;
}
