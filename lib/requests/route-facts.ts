import { type LimitInfo } from '../limiter/rate-limiter.js';

/** What a transport may tell a caller about the limits of a route. */
export interface RouteFacts {
  /** `Class.method`. */
  readonly id: string;
  /** What callers are told that a policy is called. */
  nameOf(policy: string): string;
  /** The figures of a policy, for the tier that a decision was made for. */
  limitOf(policy: string, capacity: number): LimitInfo | undefined;
}
