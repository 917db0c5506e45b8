import { type Decision } from '../limiter/decision.js';

/** What has been decided for a request so far. */
export interface Charge {
  /** Undefined while the store is being asked. */
  decision: Decision | undefined;
  /** Policies and quotas that were asked: none of them is asked twice for one request. */
  readonly names: ReadonlySet<string>;
  /** Settles when the decision is there. */
  pending: Promise<unknown> | undefined;
}

const charges = new WeakMap<object, Charge>();

export function chargeOf(subject: object): Charge | undefined {
  return charges.get(subject);
}

export function keepCharge(subject: object, charge: Charge): void {
  charges.set(subject, charge);
}

/**
 * The decision that was made for a request, for loggers and handlers: of an Express or Fastify
 * request, a gRPC call, a message's context. Undefined if the request was not limited.
 */
export function rateLimitOf(request: object): Decision | undefined {
  const { raw } = request as { raw?: object };
  return (charges.get(request) ?? (raw && charges.get(raw)))?.decision;
}
