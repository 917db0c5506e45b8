import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';
import { RateLimiter, type Acquire, type AcquireRequest } from '../limiter/rate-limiter.js';
import {
  chargedName,
  chargeOf,
  denialOf,
  joinDecisions,
  keepCharge,
  type Charge,
} from './charges.js';
import { Questions } from './question.js';
import { Transports, type Patience, type Transport } from './request-reader.js';
import { type RoutePlan } from './route-plan.js';
import { RouteTable } from './route-table.js';
import { subjectOf } from './subject.js';
import { Waiting } from './waiting.js';

const NOTHING_CHARGED: Charge = { decision: undefined, names: new Set(), pending: undefined };

/**
 * Asks the limiter for what the route's decorators say. Answers at once whenever the limiter does:
 * a promise per request would cost more than the decision.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(
    @Inject(RouteTable) private readonly routes: RouteTable,
    @Inject(RateLimiter) private readonly limiter: RateLimiter,
    @Inject(Questions) private readonly questions: Questions,
    @Inject(Transports) private readonly transports: Transports,
    @Inject(Waiting) private readonly waiting: Waiting,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.check(this.planOf(context), context);
  }

  protected planOf(context: ExecutionContext): RoutePlan {
    return this.routes.planOf(context.getClass(), context.getHandler());
  }

  /** `part` is what can be asked without a caller's name. */
  protected partOf(plan: RoutePlan, part: RoutePlan, context: ExecutionContext): RoutePlan {
    if (part === plan) return plan;
    return this.questions.knowsCaller(context, this.transports.of(context)) ? plan : part;
  }

  /** The same for a plan that is only a part of the route's. */
  check(plan: RoutePlan, context: ExecutionContext): boolean | Promise<boolean> {
    if (plan.isEmpty) return true;
    const transport = this.transports.of(context);
    const around = transport.around?.(context);
    return around === undefined
      ? this.decide(plan, context, transport)
      : around(() => this.decide(plan, context, transport));
  }

  private decide(
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
  ): boolean | Promise<boolean> {
    const subject = subjectOf(context);
    const charge = chargeOf(subject);
    if (charge !== undefined) return this.afterCharge(plan, context, transport, subject, charge);
    return this.ask(plan, context, transport, subject, undefined);
  }

  /** Another guard, an earlier middleware or another field of the operation was here before. */
  private afterCharge(
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
    charge: Charge,
  ): boolean | Promise<boolean> {
    if (charge.pending !== undefined) {
      return charge.pending.then(() => this.decide(plan, context, transport));
    }
    return this.ask(plan, context, transport, subject, charge);
  }

  private ask(
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
    before: Charge | undefined,
  ): boolean | Promise<boolean> {
    const { single } = plan;
    let request: Acquire;
    if (single !== undefined && before === undefined) {
      request = this.questions.single(single, plan, context, transport);
    } else {
      const all = this.questions.all(plan, context, transport, before?.names);
      if (all.length === 0) return true;
      if (before !== undefined) {
        if (before.handedOver !== undefined) return true;
        throwIfDenied(all, before, plan, context, transport);
      }
      request = all.length === 1 ? all[0]! : all;
    }
    const answer = this.limiter.tryAcquire(request);
    if (!(answer instanceof Promise)) {
      return this.settle(answer, request, plan, context, transport, subject, before);
    }
    keepCharge(subject, { ...(before ?? NOTHING_CHARGED), pending: answer });
    return answer.then((decision) =>
      this.settle(decision, request, plan, context, transport, subject, before),
    );
  }

  private settle(
    decision: Decision,
    request: Acquire,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
    before: Charge | undefined,
  ): boolean | Promise<boolean> {
    // All or nothing: who was denied has taken nothing, and the rest may be asked for again.
    const charge = chargeAfter(decision, request, before);
    keepCharge(subject, charge);
    transport.decided(context, charge.decision!, plan);
    if (!decision.allowed) {
      const patience = transport.patienceOf?.(context);
      if (patience === undefined) {
        return this.deny(decision, charge, plan, context, transport, subject);
      }
      return this.wait(patience, decision, request, plan, context, transport, subject, before);
    }
    if (decision.delayMs === 0) return true;
    const held = this.waiting.hold(decision, request, context, transport);
    keepCharge(subject, { ...charge, pending: held });
    return held.then((isLetGo) => {
      keepCharge(subject, charge);
      return isLetGo;
    });
  }

  /** Guards that come later, of authentication above all, still have their say. */
  private deny(
    decision: Decision,
    charge: Charge,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
  ): true {
    const rejection = (): Error => rejectionOf(decision, plan, context, transport);
    if (!plan.handsOver || !transport.takesHandOver?.(context)) throw rejection();
    keepCharge(subject, { ...charge, handedOver: { decision, rejection } });
    return true;
  }

  /** Denied, but not for good: until it is known, other guards of the request wait as well. */
  private async wait(
    patience: Patience,
    denied: Decision,
    request: Acquire,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
    before: Charge | undefined,
  ): Promise<boolean> {
    const waiting = this.waiting.forTokens(request, patience);
    keepCharge(subject, { ...(before ?? NOTHING_CHARGED), pending: waiting });
    const decision = (await waiting) ?? denied;
    keepCharge(subject, chargeAfter(decision, request, before));
    if (!decision.allowed) throw rejectionOf(denied, plan, context, transport);
    return true;
  }
}

function chargeAfter(decision: Decision, request: Acquire, before: Charge | undefined): Charge {
  const names = decision.allowed ? namesOf(request, before) : (before ?? NOTHING_CHARGED).names;
  return { decision: joinDecisions(before?.decision, decision), names, pending: undefined };
}

/** Another field of the same operation has asked, and was told. */
function throwIfDenied(
  requests: readonly AcquireRequest[],
  before: Charge,
  plan: RoutePlan,
  context: ExecutionContext,
  transport: Transport,
): void {
  for (const { policy, app } of requests) {
    const denial = denialOf(before, chargedName(policy, app));
    if (denial !== undefined) throw rejectionOf(denial, plan, context, transport);
  }
}

/** The policy that denied may have words of its own. */
function rejectionOf(
  decision: Decision,
  plan: RoutePlan,
  context: ExecutionContext,
  transport: Transport,
): Error {
  if (transport.isOneWay?.(context)) return transport.rejection(context, decision, plan);
  const policy = plan.policies.find(({ name }) => name === decision.policy);
  return policy?.rejection?.(decision, context) ?? transport.rejection(context, decision, plan);
}

function namesOf(request: Acquire, before: Charge | undefined): ReadonlySet<string> {
  if (before === undefined && !isList(request)) {
    return oneName(chargedName(request.policy, request.app));
  }
  const names = new Set(before?.names);
  for (const { policy, app } of isList(request) ? request : [request]) {
    names.add(chargedName(policy, app));
  }
  return names;
}

function isList(request: Acquire): request is readonly AcquireRequest[] {
  return Array.isArray(request);
}

const single = new Map<string, ReadonlySet<string>>();

/** The names of policies and apps are few and known, so their sets are made once. */
function oneName(name: string): ReadonlySet<string> {
  let set = single.get(name);
  if (set === undefined) single.set(name, (set = new Set([name])));
  return set;
}
