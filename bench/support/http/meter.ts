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
  /** What the figures are of. */
  readonly note: string;
  /** What leaves a bar undecided, where twins are further apart. */
  readonly mostApart: number;
  /** How many rounds of new servers it takes, where so many were asked for. */
  rounds(asked: number): number;
  /** A new server for each variant; what a request costs, by label. */
  measure(platform: Platform, load: ServerLoad, redisUrl: string): Promise<Map<string, number>>;
}
