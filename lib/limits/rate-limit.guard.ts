import {
  HttpException,
  Inject,
  Injectable,
  Optional,
  type CanActivate,
  type ExecutionContext,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleMissingError } from '../common/errors.js';
import { isStrayPromise } from '../common/promises.js';
import { type Decision } from '../limiter/decision.js';
import { RateLimiter, type Acquire, type AcquireRequest } from '../limiter/rate-limiter.js';
import { Admission } from '../requests/admission.js';
import { badRequestOf, refusalByLine } from '../requests/rejections.js';
import { subjectOf } from '../requests/subject.js';
import { CallerGone, Transports, type Transport, type WaitPolicy } from '../requests/transport.js';
import { NotYet } from './awaited-values.js';
import {
  chargeOf,
  joinDecisions,
  keepCharge,
  Ledger,
  NOTHING_CHARGED,
  type Charge,
  type HandOver,
} from './charges.js';
import { ownGuards } from './guard-order.js';
import { RequestBuilder } from './request-builder.js';
import { RequestFaults } from './request-faults.js';
import { handsOver } from './route-metadata.js';
import { type RoutePlan } from './route-plan.js';
import { methodNameOf } from '../requests/by-handler.js';
import { RouteTable } from './route-table.js';
import { Waiting } from './waiting.js';

/**
 * Charges the policies of the route's decorators. Answers at once whenever the limiter does:
 * a promise per request would cost more than the decision.
 */
@Injectable()
export class RateLimitGuard implements CanActivate, OnModuleInit {
  private readonly routes: Pick<RouteTable, 'planOf'>;

  /**
   * Its parts are the module's. A unit test of a controller is put together without them, so each is
   * optional; an application is not: it does not start, and no request passes.
   * @internal
   */
  constructor(
    @Optional() @Inject(RouteTable) routes: RouteTable | undefined,
    @Optional() @Inject(RateLimiter) private readonly limiter: RateLimiter,
    @Optional() @Inject(RequestBuilder) private readonly builder: RequestBuilder,
    @Optional() @Inject(Transports) private readonly transports: Transports,
    @Optional() @Inject(Waiting) private readonly waiting: Waiting,
    @Optional() @Inject(RequestFaults) private readonly faults: RequestFaults,
    @Optional() @Inject(Admission) private readonly admission?: Admission,
  ) {
    this.routes = routes ?? NO_MODULE;
  }

  onModuleInit(): void {
    if (this.routes === NO_MODULE) throw new ModuleMissingError('@RateLimit');
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.check(this.planOf(context), context);
  }

  /** @internal */
  protected planOf(context: ExecutionContext): RoutePlan {
    return this.routes.planOf(context.getClass(), context.getHandler());
  }

  /** As long as the caller's name is not known, only the policies that do without it. @internal */
  protected checkPart(
    plan: RoutePlan,
    name: 'ofClass' | 'ofApp',
    context: ExecutionContext,
  ): boolean | Promise<boolean> {
    const part = plan[name];
    if (part === plan) return this.check(plan, context);
    try {
      const knowsCaller = this.builder.knowsCaller(context, this.transports.of(context));
      return this.check(knowsCaller ? plan : part, context);
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      return error.settled.then(() => this.checkPart(plan, name, context));
    }
  }

  /** The same for a plan that is only a part of the route's. @internal */
  check(plan: RoutePlan, context: ExecutionContext): boolean | Promise<boolean> {
    if (plan.isEmpty) {
      this.builder.awaited.forget(context);
      return true;
    }
    const transport = this.transports.of(context);
    const around = transport.around?.(context);
    const isInLine = this.admission?.isOn === true && transport.entersLine?.(context) === true;
    const decide = isInLine ? () => this.enterLine(plan, context, transport) : undefined;
    if (around === undefined) return decide?.() ?? this.decide(plan, context, transport);
    return around(decide ?? (() => this.decide(plan, context, transport)));
  }

  /** Requests of HTTP were in line at their server; all others are here, before anything is charged. */
  private enterLine(
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
  ): boolean | Promise<boolean> {
    const admission = this.admission!;
    const admitted = admission.admit({
      subject: subjectOf(context),
      rawRequest: () => transport.rawRequestOf(context),
      isGone: () => transport.isGone?.(context) === true,
      waitPolicy: transport.waitPolicyOf?.(context, true),
    });
    if (admitted === true) return this.decide(plan, context, transport);
    return admitted.then((fate) => {
      if (fate === 'run') return this.decide(plan, context, transport);
      if (fate === 'gone') return false;
      const refusal = refusalByLine(admission.retryAfterMs());
      throw transport.rejection(context, refusal, plan);
    });
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
    const { handedOver } = charge;
    if (handedOver?.isByLine === true) return throwUnlessDegraded(handedOver, context);
    const ledger = this.ledgerOf(subject, charge);
    const ahead = ledger.tail ?? charge.pending;
    const ask = (): boolean | Promise<boolean> =>
      this.ask(plan, context, transport, subject, chargeOf(subject));
    if (ahead === undefined) return ask();
    // One after the other: if all waited for the same promise, each decision would wake all that are left.
    const turn = ahead.then(ask, ask);
    const end = (): void => {
      if (ledger.tail === turn) ledger.tail = undefined;
    };
    ledger.tail = turn;
    turn.then(end, end);
    return turn;
  }

  /** Most requests are charged once, and need none. */
  private ledgerOf(subject: object, charge: Charge): Ledger {
    const { asked, call, decision } = charge;
    if (charge.ledger !== undefined) return charge.ledger;
    const ledger = new Ledger();
    if (asked !== undefined && decision !== undefined) {
      ledger.note(call, asked, decision, this.builder.costOf);
    }
    keepCharge(subject, { ...charge, ledger });
    return ledger;
  }

  private ask(
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
    before: Charge | undefined,
  ): boolean | Promise<boolean> {
    const { builder } = this;
    const { single } = plan;
    let request: Acquire;
    let answer: Decision | Promise<Decision>;
    try {
      if (single !== undefined && before === undefined) {
        request = builder.single(single, plan, context, transport);
      } else {
        before?.ledger?.enter(context, before.decision);
        const all = builder.all(plan, context, transport, before?.ledger);
        if (all.length === 0 || before?.handedOver !== undefined) {
          builder.awaited.forget(context);
          return true;
        }
        if (before !== undefined) this.throwIfDenied(all, before, plan, context, transport);
        request = all.length === 1 ? all[0]! : all;
      }
      builder.awaited.forget(context);
      answer = this.limiter.tryAcquire(request);
    } catch (error) {
      if (error instanceof NotYet) {
        return error.settled.then(() => this.decide(plan, context, transport));
      }
      builder.awaited.forget(context);
      return this.afterFault(error, plan, context, transport);
    }
    if (!(answer instanceof Promise)) {
      return this.settle(answer, request, plan, context, transport, subject, before);
    }
    keepCharge(subject, { ...(before ?? NOTHING_CHARGED), pending: answer });
    return answer.then((decision) =>
      this.settle(decision, request, plan, context, transport, subject, chargeOf(subject)),
    );
  }

  /** A request for the impossible is no failure of the service, and its answer shows no more than that. */
  private afterFault(
    error: unknown,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
  ): false {
    if (error instanceof CallerGone) return false;
    const body = badRequestOf(error);
    if (body === undefined) throw error;
    this.faults.badRequest(plan.id, body, error);
    throw transport.badRequest(context, body, plan);
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
    if (before?.decision === undefined) transport.counts.begin(context);
    const charge = this.chargeAfter(decision, request, context, before);
    keepCharge(subject, charge);
    transport.decided(context, charge.decision!, plan);
    if (decision.allowed && decision.delayMs === 0) return true;
    const waitPolicy = transport.waitPolicyOf?.(context, this.builder.areShared(plan));
    if (!decision.allowed) {
      if (waitPolicy === undefined || waitPolicy.maxWaitMs < 1) {
        return this.deny(decision, charge, plan, context, transport, subject);
      }
      return this.wait(waitPolicy, decision, request, plan, context, transport, subject, before);
    }
    if (waitPolicy !== undefined && decision.delayMs > waitPolicy.maxWaitMs) {
      const { delayMs: retryAfterMs } = decision;
      const denied = { ...decision, allowed: false, delayMs: 0, retryAfterMs };
      const payments = charge.ledger?.giveBack(this.builder.costOf) ?? [
        { asked: request, decision },
      ];
      return this.waiting.giveBack(payments).then(() => {
        this.countDenied(denied, false, plan, context, transport);
        throw this.rejectionOf(denied, plan, context, transport);
      });
    }
    const held = this.waiting.hold(decision, request, context, transport, waitPolicy);
    keepCharge(subject, { ...charge, pending: held });
    return held.then((isLetGo) => {
      keepCharge(subject, { ...chargeOf(subject)!, pending: undefined });
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
    const rejection = (): Error => this.rejectionOf(decision, plan, context, transport);
    const isHandedOver = plan.handsOver && isReplaceable(transport, context);
    this.giveBackEarlier(charge.ledger);
    this.countDenied(decision, isHandedOver, plan, context, transport);
    if (!isHandedOver) throw rejection();
    keepCharge(subject, { ...charge, handedOver: { decision, rejection } });
    return true;
  }

  /** Denied, but not for good: until it is known, other guards of the request wait as well. */
  private async wait(
    waitPolicy: WaitPolicy,
    denied: Decision,
    request: Acquire,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
    subject: object,
    before: Charge = NOTHING_CHARGED,
  ): Promise<boolean> {
    const waiting = this.waiting.forTokens(request, waitPolicy);
    keepCharge(subject, { ...before, pending: waiting });
    const decision = (await waiting) ?? denied;
    const { ledger } = chargeOf(subject)!;
    const charge = { ...before, ledger };
    keepCharge(subject, this.chargeAfter(decision, request, context, charge));
    if (decision.allowed) return true;
    this.giveBackEarlier(ledger);
    this.countDenied(denied, false, plan, context, transport);
    throw this.rejectionOf(denied, plan, context, transport);
  }

  /**
   * All or nothing: what guards before this one have taken for the call goes back. The answer does not wait for it:
   * later requests of this process come behind it in the store as well.
   */
  private giveBackEarlier(ledger: Ledger | undefined): void {
    const payments = ledger?.giveBack(this.builder.costOf);
    if (payments !== undefined && payments.length > 0) void this.waiting.giveBack(payments);
  }

  private chargeAfter(
    decision: Decision,
    asked: Acquire,
    call: object,
    before: Charge | undefined,
  ): Charge {
    const ledger = before?.ledger;
    // Callers are not told of tokens that go back.
    const kept = decision.allowed || ledger === undefined ? before?.decision : ledger.kept;
    const joined = joinDecisions(kept, decision);
    if (ledger === undefined) {
      return { decision: joined, asked, call, ledger, pending: undefined };
    }
    ledger.note(call, asked, decision, this.builder.costOf);
    return { ...NOTHING_CHARGED, decision: joined, ledger };
  }

  /** A listener of the application that fails changes nothing for the caller. */
  private countDenied(
    decision: Decision,
    isHandedOver: boolean,
    plan: RoutePlan,
    context: ExecutionContext,
    { counts }: Transport,
  ): void {
    if (isHandedOver) counts.handedOver++;
    else counts.denied++;
    for (const listener of counts.onDenied) {
      const failed = (error: unknown): void =>
        this.faults.failed(undefined, 'onDenied', error, 'The request is denied all the same.');
      try {
        const told = { ...decision, policy: plan.nameOf(decision.policy) };
        const made: unknown = listener(told, context);
        if (isStrayPromise(made)) (made as Promise<unknown>).then(undefined, failed);
      } catch (error) {
        failed(error);
      }
    }
  }

  /** Another field of the same operation was denied by the same policy and key. */
  private throwIfDenied(
    requests: readonly AcquireRequest[],
    before: Charge,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
  ): void {
    for (const request of requests) {
      const denial = before.ledger?.denialOf(request);
      if (denial !== undefined) throw this.rejectionOf(denial, plan, context, transport);
    }
  }

  private rejectionOf(
    decision: Decision,
    plan: RoutePlan,
    context: ExecutionContext,
    transport: Transport,
  ): Error {
    const own = transport.isOneWay?.(context) ? undefined : this.ownRejection(decision, context);
    const told = { ...decision, policy: plan.nameOf(decision.policy) };
    return own ?? transport.rejection(context, told, plan);
  }

  /** The application may have an error of its own, and may throw it as well. */
  private ownRejection(decision: Decision, context: ExecutionContext): Error | undefined {
    try {
      const own: unknown = this.builder.ownRejectionOf(decision, context);
      return typeof own === 'object' && own !== null && !isStrayPromise(own)
        ? (own as Error)
        : undefined;
    } catch (error) {
      if (isMeantForCallers(error)) return error;
      this.faults.failed(decision.policy, 'rejection', error, 'The usual one is sent.');
      return undefined;
    }
  }
}

/** Refused by the line, and here for the answer that `@Degrade` has kept; nothing is charged for that. */
function throwUnlessDegraded({ rejection }: HandOver, context: ExecutionContext): true {
  if (handsOver(context.getHandler()) || handsOver(context.getClass())) return true;
  throw rejection();
}

/** Whether an interceptor can answer in the place of the handler. */
function isReplaceable(transport: Transport, context: ExecutionContext): boolean {
  return transport.isOneWay?.(context) !== true && transport.substitutes?.takes(context) === true;
}

/** Any other error is an accident, and none of the caller's business. */
function isMeantForCallers(error: unknown): error is Error {
  const { getError } = (error ?? {}) as { getError?: unknown };
  return error instanceof HttpException || typeof getError === 'function';
}

/** In the place of the module's routes, where there is no module: a limit is never silently off. */
const NO_MODULE: Pick<RouteTable, 'planOf'> = {
  planOf(type, handler) {
    throw new ModuleMissingError(`@RateLimit on ${type.name}.${methodNameOf(type, handler)}`);
  },
};

// Guards of the application run before those of a class, and these before those of a method. The caller
// may become known in between: until then, each guard leaves policies by user to the guard that they
// stand at. Once it is known, all are charged together. It is all or nothing either way: what an outer guard took
// goes back if an inner one denies.

/** The guard of a class. */
@Injectable()
export class ClassRateLimitGuard extends RateLimitGuard {
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.checkPart(this.planOf(context), 'ofClass', context);
  }
}

/** The guard of the whole application. */
@Injectable()
export class AppRateLimitGuard extends RateLimitGuard {
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.checkPart(this.planOf(context), 'ofApp', context);
  }
}

for (const guard of [RateLimitGuard, ClassRateLimitGuard, AppRateLimitGuard]) ownGuards.add(guard);
