import {
  Inject,
  Injectable,
  Optional,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type OnModuleInit,
} from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { Observable, of, Subscriber, type Subscription } from 'rxjs';
import { ModuleMissingError } from '../common/errors.js';
import { type Decision } from '../limiter/decision.js';
import { chargeOf, type HandOver } from '../limits/charges.js';
import { methodNameOf } from '../requests/by-handler.js';
import { subjectOf } from '../requests/subject.js';
import { Transports, type Substitutes } from '../requests/transport.js';
import { type RecoveryAdmission } from './core/contract.js';
import { type DegradeRoute, type Trigger } from './degrade-route.js';
import { DegradeRoutes } from './degrade-routes.js';
import { DegradedException } from './degraded.exception.js';
import { HandlerCall } from './handler-call.js';

const ENTERED = Symbol('weir:degrade-entered');

/** Answers in the place of a handler that is not to run, fails, or is too slow. */
@Injectable()
export class DegradeInterceptor implements NestInterceptor, OnModuleInit {
  private outer: boolean | undefined = undefined;
  private readonly routes: Pick<DegradeRoutes, 'of'>;

  /** Optional for the unit tests of controllers, as the parts of the guard are. @internal */
  constructor(
    @Optional() @Inject(DegradeRoutes) routes: DegradeRoutes | undefined,
    @Optional() @Inject(Transports) private readonly transports: Transports,
    @Optional() @Inject(ApplicationConfig) private readonly config?: ApplicationConfig,
  ) {
    this.routes = routes ?? NO_MODULE;
  }

  onModuleInit(): void {
    if (this.routes === NO_MODULE) throw new ModuleMissingError('@Degrade');
  }

  intercept(
    context: ExecutionContext,
    next: CallHandler,
  ): Observable<unknown> | Promise<Observable<unknown>> {
    if (this.isOuter) return next.handle();
    const route = this.routes.of(context.getClass(), context.getHandler());
    const subject = subjectOf(context);
    const handedOver = chargeOf(subject)?.handedOver;
    const transport = this.transports.find(context)?.substitutes;
    if (route === undefined || transport?.takes(context) !== true) {
      return untouched(handedOver, next);
    }
    if (route.isBoundTwice && !entersAgain(subject)) return next.handle();
    if (handedOver !== undefined) return limited(route, context, transport, handedOver);
    const admission = route.recovery.admit();
    if (admission.kind === 'degraded') return held(route, context, transport, admission);
    return new Attended((caller) => {
      const call = new HandlerCall(route, context, transport, admission, caller);
      return next.handle().subscribe(call.asSubscriber());
    });
  }

  /** Mounted for all routes it stands around the one that `@Degrade` has bound, and that one answers. */
  private get isOuter(): boolean {
    return (this.outer ??= this.config?.getGlobalInterceptors().includes(this) ?? false);
  }
}

/** In the place of the module's routes, where there is no module. */
const NO_MODULE: Pick<DegradeRoutes, 'of'> = {
  of(type, handler) {
    throw new ModuleMissingError(`@Degrade on ${type.name}.${methodNameOf(type, handler)}`);
  },
};

type Attend = (caller: Subscriber<unknown>) => Subscription;

/**
 * The values of a handler, with a HandlerCall in between. Nest comes with a subscriber, which needs nothing
 * around it; an observer with less goes the long way.
 */
class Attended extends Observable<unknown> {
  constructor(private readonly attend: Attend) {
    super(attend);
  }

  override subscribe(caller?: unknown, error?: unknown, complete?: unknown): Subscription {
    if (caller instanceof Subscriber) return this.attend(caller as Subscriber<unknown>);
    return super.subscribe(caller as never, error as never, complete as never);
  }
}

/** A request that cannot be answered here is as if there were no `@Degrade`. */
function untouched(handedOver: HandOver | undefined, next: CallHandler): Observable<unknown> {
  if (handedOver !== undefined) throw handedOver.rejection();
  return next.handle();
}

function entersAgain(subject: object): boolean {
  const marked = subject as { [ENTERED]?: true };
  if (marked[ENTERED] === true) return true;
  marked[ENTERED] = true;
  return false;
}

function limited(
  route: DegradeRoute,
  context: ExecutionContext,
  transport: Substitutes,
  { decision, rejection, isByLine }: HandOver,
): Promise<Observable<unknown>> {
  if (route.isOff) throw rejection();
  if (isByLine === true) return fromCaches(route, context, transport, decision, rejection);
  const storeIsAway = decision.source === 'fallback';
  const trigger: Trigger = { reason: 'limited', decision, storeIsAway, level: route.pinnedLevel };
  return inPlace(route, context, transport, trigger, rejection);
}

/** There is time for no more than that. */
async function fromCaches(
  route: DegradeRoute,
  context: ExecutionContext,
  transport: Substitutes,
  decision: Decision,
  rejection: () => Error,
): Promise<Observable<unknown>> {
  const trigger: Trigger = { reason: 'overload', decision, level: route.pinnedLevel };
  const deadline = route.clock.now() + route.reads.deadlineMs * 1000;
  const substitute = await route.substitute(context, transport, trigger, deadline);
  if (substitute === undefined) throw rejection();
  route.answers.found(context, transport);
  transport.mark(context, substitute.mark);
  return of(substitute.value);
}

function held(
  route: DegradeRoute,
  context: ExecutionContext,
  transport: Substitutes,
  { reason = 'degraded', level }: RecoveryAdmission,
): Promise<Observable<unknown>> {
  const trigger: Trigger = { reason, level };
  return inPlace(route, context, transport, trigger, () => new DegradedException(reason));
}

/** The handler does not run: the answer is of the levels, the route's message, or the error. */
async function inPlace(
  route: DegradeRoute,
  context: ExecutionContext,
  transport: Substitutes,
  trigger: Trigger,
  error: () => Error,
): Promise<Observable<unknown>> {
  const deadline = route.clock.now() + route.reads.deadlineMs * 1000;
  const substitute = await route.substitute(context, transport, trigger, deadline);
  if (substitute === undefined) throw route.messageFallback(context, transport, trigger) ?? error();
  transport.mark(context, substitute.mark);
  return of(substitute.value);
}
