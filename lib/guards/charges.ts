import { decisive, type Decision } from '../limiter/decision.js';
import { httpSubjectOf } from './subject.js';

/** What has been decided for a request so far. */
export interface Charge {
  /** Undefined while the store is being asked. Of all that was asked, if it was asked in parts. */
  readonly decision: Decision | undefined;
  /** Policies and quotas that gave their tokens: none of them is asked twice for one request. */
  readonly names: ReadonlySet<string>;
  /** Settles when the decision is there. */
  readonly pending: Promise<unknown> | undefined;
  /** There if the request was denied and goes on all the same, to whoever has another answer. */
  readonly handedOver?: HandOver;
}

/** A denial that the guard has left to the interceptor of the route. */
export interface HandOver {
  readonly decision: Decision;
  /** The error that the guard would have thrown. */
  readonly rejection: () => Error;
}

/**
 * A charge lives on the request itself. A WeakMap would be the polite place, but with an entry per
 * request its upkeep costs more than all the rest of a decision: 1.7 µs against 15 ns, measured.
 */
const CHARGE = Symbol('weir:charge');

interface Charged {
  [CHARGE]?: Charge;
}

/** For the rare request that nothing can be put on. */
const sealed = new WeakMap<object, Charge>();
/** To ask each request whether it is one of these would cost more than to look where it is. */
let isAnySealed = false;

export function chargeOf(subject: object): Charge | undefined {
  const charge = (subject as Charged)[CHARGE];
  return charge === undefined && isAnySealed ? sealed.get(subject) : charge;
}

export function keepCharge(subject: object, charge: Charge): void {
  try {
    (subject as Charged)[CHARGE] = charge;
  } catch {
    isAnySealed = true;
    sealed.set(subject, charge);
  }
}

/** What was decided before, and what is new, as if all had been asked at once. */
export function joinDecisions(before: Decision | undefined, decision: Decision): Decision {
  return before === undefined ? decision : decisive([...partsOf(before), ...partsOf(decision)]);
}

/** The denial of a policy, or of a quota, that was asked before. */
export function denialOf({ decision }: Charge, name: string): Decision | undefined {
  if (decision === undefined || decision.allowed) return undefined;
  return partsOf(decision).find((part) => !part.allowed && nameOf(part) === name);
}

/** The name that a policy or an app's quota is charged under. */
export function chargedName(policy: string | undefined, app: string | undefined): string {
  return policy ?? `quota:${app}`;
}

/**
 * The decision that was made for a request, for loggers and handlers: of an Express or Fastify
 * request, a gRPC call, a message's context or payload, the context of a GraphQL operation.
 * Undefined if the request was not limited.
 */
export function rateLimitOf(request: object): Decision | undefined {
  return (chargeOf(request) ?? chargeOf(httpSubjectOf(request)))?.decision;
}

function partsOf(decision: Decision): readonly Decision[] {
  return decision.decisions ?? [decision];
}

function nameOf({ tier, policy }: Decision): string {
  return tier === 'policy' ? policy : chargedName(undefined, policy);
}
