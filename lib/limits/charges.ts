import { type ExecutionContext } from '@nestjs/common';
import { decisive, tighter, type Decision } from '../limiter/decision.js';
import { type Acquire, type AcquireRequest } from '../limiter/rate-limiter.js';
import { httpSubjectOf, partOfMessage } from '../requests/subject.js';

/** The decisions on a request so far. */
export interface Charge {
  /** Undefined while the store decides. Of all charges together, if there were several. */
  readonly decision: Decision | undefined;
  /** The first charge; the ledger has all of them as soon as there is another. */
  readonly asked: Acquire | undefined;
  /** The call of a handler that it was made for: all guards of a call have one context. */
  readonly call: object | undefined;
  readonly ledger: Ledger | undefined;
  /** Settles when the decision is there. */
  readonly pending: Promise<unknown> | undefined;
  /** There if the request was denied and goes on all the same, to an interceptor that has another answer. */
  readonly handedOver?: HandOver;
}

/** A denial that the guard, or the line, has left to the interceptor of the route. */
export interface HandOver {
  readonly decision: Decision;
  /** The error that the guard would have thrown. */
  readonly rejection: () => Error;
  /** Refused by the line: only what the caches have costs little enough. */
  readonly isByLine?: boolean;
}

export const NOTHING_CHARGED: Charge = {
  decision: undefined,
  asked: undefined,
  call: undefined,
  ledger: undefined,
  pending: undefined,
};

type CostOf = (request: AcquireRequest) => number;

/** A charge that has taken tokens. */
export interface Payment {
  readonly asked: Acquire;
  readonly decision: Decision;
}

/**
 * The payments and denials of a request, by policy and key or by app: several guards, or the fields
 * of one operation, charge the same request.
 */
export class Ledger {
  private readonly paid = new Map<string, number>();
  private readonly denials = new Map<string, Decision>();
  private call: object | undefined;
  /** Those of the call that is being charged: they go back if one of its later guards denies. */
  private payments: Payment[] = [];
  /** The decisions of the calls before it, which stay as they are then. */
  kept: Decision | undefined;
  /** The last of the charges that wait for their turn; undefined if none waits. */
  tail: Promise<unknown> | undefined;

  /** Tokens that were taken already. */
  paidFor(request: AcquireRequest): number {
    return this.paid.get(accountOf(request)) ?? 0;
  }

  denialOf(request: AcquireRequest): Decision | undefined {
    return this.denials.get(accountOf(request));
  }

  /**
   * The guards of a call ask what was paid. Another call may run because of what it finds, a field of the same
   * operation for one; so what was paid before stays paid. So do early limits: they are there for the guards behind.
   */
  enter(call: object | undefined, decided?: Decision): void {
    if (this.call === call) return;
    this.call = call;
    this.kept = decided;
    this.payments = [];
  }

  /** The payments of the call, which count no more. */
  giveBack(costOf: CostOf): readonly Payment[] {
    const { payments } = this;
    this.payments = [];
    for (const { asked } of payments) this.book(listOf(asked), (request) => -costOf(request));
    return payments;
  }

  /** `costOf` gives the tokens of a request that names no cost. */
  note(call: object | undefined, asked: Acquire, decision: Decision, costOf: CostOf): void {
    const requests = listOf(asked);
    // All or nothing: a denied charge has taken nothing, and its other parts may be charged again.
    if (!decision.allowed) return this.noteDenials(requests, decision);
    this.enter(call);
    this.payments.push({ asked, decision });
    this.book(requests, costOf);
  }

  private book(requests: readonly AcquireRequest[], costOf: CostOf): void {
    for (const request of requests) {
      const account = accountOf(request);
      this.paid.set(account, (this.paid.get(account) ?? 0) + costOf(request));
    }
  }

  /** Of a policy with two keys in one charge it is not known which was denied. */
  private noteDenials(requests: readonly AcquireRequest[], decision: Decision): void {
    for (const part of partsOf(decision)) {
      if (part.allowed) continue;
      const isOfPolicy = part.tier === 'policy';
      const those = requests.filter(({ policy, app }) => {
        return isOfPolicy ? policy === part.policy : app === part.policy;
      });
      if (those.length === 1) this.denials.set(accountOf(those[0]!), part);
    }
  }
}

/**
 * A charge lives on the request itself. A WeakMap would be the polite place, but with an entry per
 * request its upkeep costs more than all the rest of a decision: 1.7 µs against 15 ns, measured.
 */
const CHARGE = Symbol('weir:charge');

interface Charged {
  [CHARGE]?: Charge;
}

/** Charges of the rare requests that are sealed, and take no property. */
const sealed = new WeakMap<object, Charge>();
/** A look into the map for each request would cost more than the charge itself. */
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

/**
 * The decisions of before and the new one, as if all had been one charge. Of each policy only the
 * tightest part is kept: an operation may charge one for as many keys as its sender likes.
 */
export function joinDecisions(before: Decision | undefined, decision: Decision): Decision {
  const { decisions } = decision;
  if (before === undefined && (decisions === undefined || !hasTwins(decisions))) return decision;
  const parts = [...(before === undefined ? [] : partsOf(before)), ...partsOf(decision)];
  const tightest = new Map<string, Decision>();
  for (const part of parts) {
    const name = nameOf(part);
    const other = tightest.get(name);
    tightest.set(name, other === undefined ? part : tighter(other, part));
  }
  return decisive([...tightest.values()]);
}

/**
 * The decision that was made for a request, for loggers and handlers: of an Express or Fastify
 * request, a gRPC call, a message's context or payload, the context of a GraphQL operation.
 * Undefined if the request was not limited.
 */
export function rateLimitOf(request: object): Decision | undefined {
  return (chargeOf(request) ?? chargeOf(httpSubjectOf(request)))?.decision;
}

export function listOf(request: Acquire): readonly AcquireRequest[] {
  return Array.isArray(request) ? (request as AcquireRequest[]) : [request as AcquireRequest];
}

/** Of one policy, for two keys. */
function hasTwins(parts: readonly Decision[]): boolean {
  for (let i = 1; i < parts.length; i++) {
    for (let j = 0; j < i; j++) {
      const [one, other] = [parts[i]!, parts[j]!];
      if (one.policy === other.policy && one.tier === other.tier) return true;
    }
  }
  return false;
}

function partsOf(decision: Decision): readonly Decision[] {
  return decision.decisions ?? [decision];
}

/** Names of policies have no colon, and so none can be taken for a key or an app. */
function accountOf(request: AcquireRequest): string {
  if (request.policy !== undefined) return `policy:${request.policy}:${request.key}`;
  const { app } = request;
  // The limiter refuses what is no text, and to write 10,000 levels as one takes more than the stack.
  return typeof app === 'string' ? `app:${app}` : 'app';
}

function nameOf({ tier, policy }: Decision): string {
  return tier === 'policy' ? `policy:${policy}` : `app:${policy}`;
}

/**
 * WebSocket messages with nothing but a word or a number, and no callback, bring no object along that
 * could stand for them. Guards and interceptors still share a list of arguments, but parameters of a
 * handler are read from a copy. For them it is the last message that this client got through to this
 * handler; with several on their way at once that may be a later one than their own.
 */
const lastDecisions = new WeakMap<object, WeakMap<object, Decision>>();

export function keepPrimitiveDecision(context: ExecutionContext, decision: Decision): void {
  if (!decision.allowed || partOfMessage(context.getArgs()) !== undefined) return;
  const client = context.getArgByIndex<object>(0);
  let decisions = lastDecisions.get(client);
  if (decisions === undefined) lastDecisions.set(client, (decisions = new WeakMap()));
  decisions.set(context.getHandler(), decision);
}

export function primitiveDecisionOf(context: ExecutionContext): Decision | undefined {
  if (context.getType<string>() !== 'ws') return undefined;
  if (partOfMessage(context.getArgs()) !== undefined) return undefined;
  return lastDecisions.get(context.getArgByIndex<object>(0))?.get(context.getHandler());
}
