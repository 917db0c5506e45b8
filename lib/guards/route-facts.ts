import { type LimitInfo } from '../limiter/rate-limiter.js';

/** What a transport may tell a caller about the limits of a route. */
export interface RouteFacts {
  /** `Class.method`. */
  readonly id: string;
  /** The figures of a policy, for the tier that a decision was made for. */
  limitOf(policy: string, capacity: number): LimitInfo | undefined;
}
