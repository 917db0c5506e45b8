import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { decisive, type Decision } from '../limiter/decision.js';
import { RateLimiter, type Acquire } from '../limiter/rate-limiter.js';
import { chargeOf, keepCharge, type Charge } from './charges.js';
import { Questions } from './question.js';
import { Transports, type Transport } from './request-reader.js';
import { type RoutePlan } from './route-plan.js';
import { RouteTable } from './route-table.js';
import { subjectOf } from './subject.js';
import { Waiting } from './waiting.js';

const NOTHING_ASKED: ReadonlySet<string> = new Set();

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
    return this.check(this.routes.planOf(context.getClass(), context.getHandler()), context);
  }

  /** The same for a plan that is only a part of the route's. */
  check(plan: RoutePlan, context: ExecutionContext): boolean | Promise<boolean> {
    if (plan.isEmpty) return true;
    const transport = this.transports.of(context);
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
      return charge.pending.then(() => this.check(plan, context));
    }
    const { decision } = charge;
    if (decision?.allowed === false) throw rejectionOf(decision, plan, context, transport);
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
      request = all.length === 1 ? all[0]! : all;
    }
    const answer = this.limiter.tryAcquire(request);
    const names = namesOf(request, before);
    if (!(answer instanceof Promise)) {
      const decision = joined(before, answer);
      keepCharge(subject, { decision, names, pending: undefined });
      return this.settle(decision, answer.delayMs, request, plan, context, transport);
    }
    const charge: Charge = { decision: before?.decision, names, pending: answer };
    keepCharge(subject, charge);
    return answer.then((late) => {
      const decision = joined(before, late);
      charge.decision = decision;
      charge.pending = undefined;
      return this.settle(decision, late.delayMs, request, plan, context, transport);
    });
  }

  private settle(
    decision: Decision,
    delayMs: number,
    request: Acquire,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
  ): boolean | Promise<boolean> {
    transport.decided(context, decision, plan);
    if (!decision.allowed) throw rejectionOf(decision, plan, context, transport);
    return delayMs === 0 ? true : this.waiting.hold(delayMs, request, context, transport);
  }
}

/** Callers are told about everything that was asked for a request, not only about the last part. */
function joined(before: Charge | undefined, answer: Decision): Decision {
  const earlier = before?.decision;
  if (earlier === undefined) return answer;
  return decisive([...(earlier.decisions ?? [earlier]), ...(answer.decisions ?? [answer])]);
}

/** The policy that denied may have words of its own. */
function rejectionOf(
  decision: Decision,
  plan: RoutePlan,
  context: ExecutionContext,
  transport: Transport,
): Error {
  const policy = plan.policies.find(({ name }) => name === decision.policy);
  return policy?.rejection?.(decision, context) ?? transport.rejection(context, decision, plan);
}

function namesOf(request: Acquire, before: Charge | undefined): ReadonlySet<string> {
  if (before === undefined && !Array.isArray(request)) {
    const { policy, app } = request as { policy?: string; app?: string };
    return policy !== undefined ? oneName(policy) : oneName(`quota:${app}`);
  }
  const requests = Array.isArray(request) ? (request as Acquire[]) : [request];
  const names = new Set(before?.names ?? NOTHING_ASKED);
  for (const one of requests) {
    const { policy, app } = one as { policy?: string; app?: string };
    names.add(policy ?? `quota:${app}`);
  }
  return names;
}

const single = new Map<string, ReadonlySet<string>>();

/** The names of policies and apps are few and known, so their sets are made once. */
function oneName(name: string): ReadonlySet<string> {
  let set = single.get(name);
  if (set === undefined) single.set(name, (set = new Set([name])));
  return set;
}
