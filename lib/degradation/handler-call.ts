import { type ExecutionContext } from '@nestjs/common';
import { type Subscriber } from 'rxjs';
import { StoreUnavailableError } from '../common/errors.js';
import { DeadlineExceededError, ProtectionRejectedError } from '../protection/errors.js';
import { type AnswerFacts, type Substitutes } from '../requests/transport.js';
import { type CallOutcome } from '../common/outcome-window.js';
import { type RecoveryAdmission, type DegradeReason } from './core/contract.js';
import { type DegradeRoute, type Substitute, type Trigger } from './degrade-route.js';
import { DegradedException } from './degraded.exception.js';
import { LightSubscriber } from './light-subscriber.js';
import { type Awaited, type DeadlineQueue, type CallDeadline } from './route-deadlines.js';

const NOTHING = Symbol('nothing');

/**
 * A request whose handler runs. Its values go on as they come. If it fails or is late the levels are
 * tried, and its later values only fill the caches.
 */
export class HandlerCall extends LightSubscriber implements Awaited {
  // All fields have a value from the start, so that all calls look alike to V8.
  overdueAt = 0;
  before: Awaited | undefined = undefined;
  after: Awaited | undefined = undefined;
  private readonly startedAt: number;
  private readonly deadline: CallDeadline;
  /** In which it waits now. */
  private queue: DeadlineQueue | undefined = undefined;
  private values = 0;
  /** The first value, while it may be the only one: it is kept before other code can change it. */
  private held: unknown = NOTHING;
  /** The facts of the answer before another was given. */
  private facts: AnswerFacts | undefined = undefined;
  private isSlow = false;
  private isSettled = false;
  /** The caller needs nothing more: what comes now comes too late for it. */
  private isAnswered = false;

  constructor(
    private readonly route: DegradeRoute,
    private readonly context: ExecutionContext,
    private readonly transport: Substitutes,
    private readonly admission: RecoveryAdmission,
    private readonly caller: Subscriber<unknown>,
  ) {
    super();
    caller.add(this);
    this.startedAt = route.clock.now();
    this.deadline = route.deadlineOf(context, transport);
    this.wait(this.deadline.slow, this.startedAt);
  }

  protected heard(value: unknown): void {
    const { route, context, transport } = this;
    this.pass();
    if (
      ++this.values > 1 ||
      !this.deadline.isRead ||
      !route.answers.isDue(context, transport, this.startedAt)
    ) {
      return this.tell(value);
    }
    this.held = value;
    // Handlers with one answer complete at once; a stream of them goes on with hardly a delay.
    queueMicrotask(() => this.pass());
  }

  protected completed(): void {
    const { route, context, transport, held } = this;
    this.settle('success');
    if (held !== NOTHING) {
      const facts = this.facts ?? transport.factsOf(context);
      route.answers.keep(held, facts, context, transport);
    }
    this.pass();
    if (this.isAnswered) this.unsubscribe();
    else this.caller.complete();
  }

  protected failed(error: unknown): void {
    const { route, context, transport } = this;
    const isFailure = !transport.isAborted(context) && route.isFailure(error, transport);
    this.settle(isFailure && !isCrowdedOut(error) ? 'failure' : 'neutral');
    this.pass();
    if (this.isAnswered) {
      if (isFailure) route.hide(error);
      return this.unsubscribe();
    }
    // A caller that has a part of an answer cannot be given another one.
    if (!isFailure || this.values > 0 || route.isOff) return this.caller.error(error);
    const trigger = { reason: reasonOf(error), error, storeIsAway: isStoreFault(error) };
    this.substitute(trigger)
      .then((substitute) => {
        const message =
          substitute === undefined && route.messageFallback(context, transport, trigger);
        if (message === undefined) return this.caller.error(error);
        route.hide(error);
        if (substitute === undefined) this.caller.error(message);
        else this.deliver(substitute);
      })
      .catch((message: unknown) => {
        route.hide(error);
        this.caller.error(message);
      });
  }

  /** It takes too long: first for the levels to be tried, then to be waited for at all. */
  overdue(): void {
    const { rest } = this.deadline;
    if (this.isSlow || rest === undefined) return this.giveUp();
    this.isSlow = true;
    this.wait(rest, this.route.clock.now());
    if (this.values > 0 || this.route.isOff) return;
    this.substitute({ reason: 'slow' })
      .then((substitute) => {
        if (substitute !== undefined && !this.isSettled) this.deliver(substitute);
      })
      // Words are no better than to wait.
      .catch(() => undefined);
  }

  /** Nobody waits any more. A handler whose caller has an answer runs on, for the caches. */
  override unsubscribe(): void {
    if (this.isAnswered && !this.isStopped) return;
    super.unsubscribe();
    if (this.isSettled) return;
    this.isAnswered = true;
    this.settle('neutral');
  }

  private pass(): void {
    const { held } = this;
    if (held === NOTHING) return;
    this.held = NOTHING;
    this.tell(held);
  }

  private tell(value: unknown): void {
    if (!this.isAnswered) this.caller.next(value);
  }

  private giveUp(): void {
    const { route, context, transport } = this;
    // One that has begun to answer is at work, however long it takes.
    this.settle(this.values > 0 ? 'neutral' : 'failure');
    if (this.isAnswered || this.values > 0 || route.isOff) return;
    this.answered();
    const trigger: Trigger = { reason: 'slow' };
    this.caller.error(
      route.messageFallback(context, transport, trigger) ?? new DegradedException('slow'),
    );
  }

  private substitute(trigger: Trigger): Promise<Substitute | undefined> {
    const { route, context, transport } = this;
    const deadline = this.startedAt + this.deadline.deadlineMs * 1000;
    return route.substitute(context, transport, trigger, deadline);
  }

  private deliver({ value, mark }: Substitute): void {
    if (this.isAnswered || this.caller.closed) return;
    this.answered();
    this.transport.mark(this.context, mark);
    this.caller.next(value);
    this.caller.complete();
  }

  private answered(): void {
    this.isAnswered = true;
    this.facts = this.transport.factsOf(this.context);
  }

  private wait(queue: DeadlineQueue | undefined, nowMicros: number): void {
    this.queue = queue;
    queue?.add(this, nowMicros);
  }

  private settle(outcome: CallOutcome): void {
    this.queue?.remove(this);
    if (this.isSettled) return;
    this.isSettled = true;
    const { recovery, clock } = this.route;
    const now = clock.now();
    recovery.settled(this.admission, outcome, (now - this.startedAt) / 1000, now);
  }
}

function reasonOf(error: unknown): DegradeReason {
  if (error instanceof DeadlineExceededError) return 'slow';
  // A breaker, a bulkhead or a rate did not let a call of the handler through.
  return error instanceof ProtectionRejectedError ? 'open' : 'failed';
}

/** There was no room for the call: a matter of how many there are, not of how the resource fares. */
function isCrowdedOut(error: unknown): boolean {
  return error instanceof ProtectionRejectedError && error.reason !== 'open';
}

/** Level 1 lives in the same store. */
function isStoreFault(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}
