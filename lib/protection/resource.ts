import { type Clock } from '../common/clock.js';
import { type EventHub } from '../common/event-hub.js';
import { LogLinear } from '../common/histogram.js';
import { isStrayPromise } from '../common/promises.js';
import { quotedError } from '../common/quoted.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type CallOutcome } from '../common/outcome-window.js';
import { rejectBigValue } from './big-values.js';
import { Breaker, type BreakerMode } from './breaker.js';
import { Bulkhead } from './bulkhead.js';
import {
  BigValueError,
  BreakerOpenError,
  BulkheadRejectedError,
  ProtectionRejectedError,
} from './errors.js';
import { type ProtectionEvents } from './events.js';
import { Gradient } from './gradient.js';
import { RateGate } from './rate-gate.js';
import { sameSettings, type ResourceOptions, type ResourceSettings } from './resource-options.js';
import {
  countGiveUp,
  ResourceCounts,
  whyOf,
  type GiveUp,
  type ResourceStats,
} from './resource-stats.js';
import { Run, takeOptions, type RunOptions, type RunOwner, type Work } from './run.js';
import { Throttle } from './throttle.js';
import { type TimerWheel } from './timer-wheel.js';

export interface ResourceDeps {
  readonly clock: Clock;
  readonly wheel: TimerWheel;
  readonly events: EventHub<ProtectionEvents>;
  readonly limiter: RateLimiter | undefined;
}

/**
 * One resource: what protects it, and its calls. A call asks the rate policy, then the breaker,
 * then waits for a slot, and whatever it was given is given back exactly once, in `over`.
 *
 * A slot belongs to the work and not to the caller: work that goes on after its deadline still
 * holds it, or a resource that hangs would be sent ever more work.
 */
export class Resource implements RunOwner {
  private readonly counts = new ResourceCounts();
  /** How long the work took that has ended, also where its caller had gone. */
  readonly times = new LogLinear();
  private readonly log: CallLog;
  private breaker: Breaker | undefined;
  private bulkhead: Bulkhead | undefined;
  private gate: RateGate | undefined;
  private throttle: Throttle | undefined;
  /** Only of a bulkhead whose size follows how long calls take. */
  private gradient: Gradient | undefined;
  private overdue = 0;
  /**
   * V8 drops the code that it has compiled for a kind of object when a collection finds none of
   * them alive; then the calls after each pause were twice as slow. So here is one that lives on.
   */
  protected readonly shape: Run;
  /** Calls whose work goes on. */
  inFlight = 0;

  constructor(
    readonly name: string,
    public settings: ResourceSettings,
    private readonly deps: ResourceDeps,
  ) {
    this.log = new CallLog(name, this.counts, deps.events);
    this.breaker = this.newBreaker(settings);
    this.bulkhead = newBulkhead(settings);
    this.gate = this.newGate(settings);
    this.throttle = newThrottle(settings);
    this.gradient = newGradient(settings);
    this.shape = new Run(this, () => undefined, 0.5);
  }

  now(): number {
    return this.deps.clock.now();
  }

  /** A call that takes longer is slow. */
  private get slowMicros(): number {
    return this.settings.slow?.thresholdMicros ?? Infinity;
  }

  /** `args` are the arguments of the call, of which a rate may be by one. */
  run(work: Work<unknown>, options?: RunOptions, args = options?.args): Promise<unknown> {
    const now = this.now();
    const run = new Run(this, work, now);
    this.counts.calls++;
    try {
      if (options !== undefined) takeOptions(run, options, now);
      if (this.throttle !== undefined) this.askThrottle(this.throttle, now);
      if (this.gate !== undefined) {
        const wait = this.gate.ask(run, args ?? NO_ARGUMENTS);
        if (wait !== undefined) return this.enterAfter(wait, run, now);
      }
      if (!this.enter(run, now)) return run.answer();
    } catch (error) {
      this.reject(run, error);
      // The reason of a caller's own signal is passed on as it is, and need not be an error.
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      return Promise.reject(error);
    }
    if (run.dueAt === Infinity && run.callerSignal === undefined) return run.runToEnd();
    const answer = run.answer();
    run.begin();
    return answer;
  }

  checkValue(value: unknown): void {
    rejectBigValue(this.name, value, this.settings, this.counts);
  }

  /** Another answer stands in for this error, which only the log shows. */
  replaced(error: unknown): void {
    this.counts.fallbacks++;
    this.deps.events.emit('fallback', { resource: this.name, error });
  }

  /** False if there is no breaker to switch. */
  switchBreaker(mode: BreakerMode): boolean {
    this.breaker?.switchTo(mode);
    return this.breaker !== undefined;
  }

  /** Other figures from now on. Parts with the same figures keep their state; calls on their way go on. */
  apply(settings: ResourceSettings): void {
    const before = this.settings;
    const { bulkhead: line } = this;
    this.settings = settings;
    if (!sameSettings(settings.breaker, before.breaker)) this.breaker = this.newBreaker(settings);
    if (!sameSettings(settings.rate, before.rate)) this.gate = this.newGate(settings);
    if (!sameSettings(settings.throttle, before.throttle)) this.throttle = newThrottle(settings);
    if (line === undefined || settings.bulkhead === undefined) {
      this.bulkhead = newBulkhead(settings);
    }
    const { maxInFlight = Infinity, maxQueue = Infinity, limit } = settings.bulkhead ?? {};
    if (limit !== 'gradient') this.gradient = undefined;
    else if (this.gradient === undefined) this.gradient = newGradient(settings);
    else this.gradient.cap(maxInFlight);
    line?.resize(this.slots(maxInFlight), maxQueue);
  }

  stats(): ResourceStats {
    const { breaker, throttle, gradient, inFlight, overdue } = this;
    const stats = {
      ...{ ...this.counts, inFlight, waiting: this.bulkhead?.waiting ?? 0, overdue },
      ...(throttle && {
        throttle: { requests: throttle.requests, refused: throttle.refused, part: throttle.part },
      }),
      ...(gradient && { limit: this.slots(gradient.limit) }),
    };
    if (breaker === undefined) return stats;
    const { kind: state, mode, epoch, openings, observed } = breaker;
    return { ...stats, breaker: { state, mode, epoch, openings, observed, ...breaker.counts } };
  }

  /** A run that waited for its slot has one now. Its permit of the breaker may be outdated. */
  goOn(run: Run): void {
    const now = this.now();
    const { breaker, permit } = run;
    const isStillGood =
      breaker === this.breaker && (permit === undefined || breaker!.begin(permit, now));
    try {
      if (!isStillGood) this.askBreaker(run, now);
    } catch (error) {
      return this.reject(run, error);
    }
    this.started(run, now);
    run.begin();
  }

  heldLong(run: Run, now: number): void {
    this.log.held(run, now - run.startedAt, this.settings);
    if (run.dueAt > now && run.dueAt !== Infinity) this.deps.wheel.set(run, run.dueAt, now);
  }

  /** The caller has been given an answer, and it was not that of the work. */
  gaveUp(run: Run, why: GiveUp, wasRunning: boolean): void {
    const now = this.now();
    countGiveUp(this.counts, why);
    if (!wasRunning) {
      this.report(run, 'neutral', false, now);
      return this.over(run);
    }
    const micros = now - run.startedAt;
    this.overdue++;
    this.setAlarm(run, now, Infinity);
    // Work that is not done after the usual time takes longer.
    if (micros >= this.slowMicros) this.log.slow(run, micros, this.settings);
    // A caller that came with too little time says nothing about the resource.
    const isSlow = run.breaker !== undefined && micros >= run.breaker.settings.slowMicros;
    const isItsFault = why === 'deadline' && (!run.isDueByCaller || isSlow);
    if (isItsFault) this.gradient?.missedDeadline();
    this.report(run, isItsFault ? 'failure' : 'neutral', isSlow, now);
  }

  /** The work has ended, and the caller is given its result. */
  cameBack(run: Run, isSuccess: boolean, error: unknown): void {
    const now = this.now();
    const micros = now - run.startedAt;
    const outcome = isSuccess ? 'success' : outcomeOf(error, this.settings.isFailure);
    this.times.record(micros);
    if (isSuccess) this.counts.succeeded++;
    else if (outcome === 'neutral') this.counts.neutral++;
    else this.counts.failed++;
    if (micros > this.slowMicros) this.log.slow(run, micros, this.settings);
    const isSlow = run.breaker !== undefined && micros > run.breaker.settings.slowMicros;
    this.report(run, outcome, isSlow, now);
    if (!isSuccess) this.throttle?.failed(error, now);
    else if (this.gradient?.ended(micros, this.inFlight, now) === true) this.resize();
    this.over(run);
  }

  /** The work has ended, and nobody waits for it any more. */
  cameLate(run: Run): void {
    this.overdue--;
    this.counts.late++;
    const micros = this.now() - run.startedAt;
    this.times.record(micros);
    if (micros > this.slowMicros) this.log.slow(run, micros, this.settings);
    this.over(run);
  }

  private enterAfter(wait: Promise<void>, run: Run, now: number): Promise<unknown> {
    const answer = run.answer();
    if (run.beginBy !== Infinity) this.deps.wheel.set(run, run.beginBy, now);
    wait
      .then(() => {
        if (!run.isOver && this.enter(run, this.now())) run.begin();
      })
      .catch((error: unknown) => this.reject(run, error));
    return answer;
  }

  private askThrottle(throttle: Throttle, now: number): void {
    if (throttle.admit(now)) return;
    const { retryAfterMs } = throttle;
    const when = retryAfterMs > 0 ? `, retry in ${retryAfterMs} ms` : '';
    const message = `resource "${this.name}": refuses calls, so that this one was not made${when}`;
    throw new ProtectionRejectedError(this.name, 'throttled', retryAfterMs, message);
  }

  /** Slots of the bulkhead, of so many that its options allow. */
  private slots(most: number): number {
    return Math.floor(Math.min(most, this.gradient?.limit ?? Infinity));
  }

  private resize(): void {
    const { bulkhead } = this.settings;
    if (bulkhead === undefined) return;
    this.bulkhead?.resize(this.slots(bulkhead.maxInFlight), bulkhead.maxQueue);
  }

  /** True if the work may begin, false if it has to wait for a slot; throws if it may not. */
  private enter(run: Run, now: number): boolean {
    const { bulkhead } = this;
    this.askBreaker(run, now);
    if (bulkhead !== undefined && !bulkhead.tryTake()) {
      if (bulkhead.isFull) throw new BulkheadRejectedError(this.name, 'full', this.inFlight, 0);
      bulkhead.join(run);
      this.deps.wheel.set(run, run.beginBy, now);
      return false;
    }
    run.slotOf = bulkhead;
    if (run.permit !== undefined && run.permit.probe !== 0) run.breaker!.begin(run.permit, now);
    this.started(run, now);
    return true;
  }

  private askBreaker(run: Run, now: number): void {
    const { breaker } = this;
    run.breaker = breaker;
    run.permit = undefined;
    if (breaker === undefined) return;
    run.permit = breaker.admit(now);
    if (run.permit === undefined) throw new BreakerOpenError(this.name, breaker.retryAfterMs(now));
  }

  private started(run: Run, now: number): void {
    this.inFlight++;
    run.start(now);
    run.tokensOf = undefined;
    this.setAlarm(run, now, run.dueAt);
  }

  /** For the deadline, or for the warning of a slot that is held for long. */
  private setAlarm(run: Run, now: number, dueAt: number): void {
    const { bulkhead } = this.settings;
    const heldAt = bulkhead === undefined ? Infinity : run.startedAt + bulkhead.heldWarningMicros;
    const first = Math.min(dueAt, heldAt > now ? heldAt : Infinity);
    if (first !== Infinity) this.deps.wheel.set(run, first, now);
    else if (run.tick !== 0) this.deps.wheel.clear(run);
  }

  /** For a run that has not begun. */
  private reject(run: Run, error: unknown): void {
    run.giveUp(whyOf(error, run.callerSignal), error);
  }

  private report(run: Run, outcome: CallOutcome, isSlow: boolean, now: number): void {
    const { permit, breaker } = run;
    if (permit === undefined) return;
    run.permit = undefined;
    breaker!.report(permit, outcome, isSlow, now);
  }

  /** Its work has ended, or will never begin: what it held is free again. */
  private over(run: Run): void {
    if (run.tick !== 0) this.deps.wheel.clear(run);
    if (run.wasStarted) this.inFlight--;
    run.queue?.leave(run);
    run.tokensOf?.refund();
    run.slotOf?.release();
  }

  private newBreaker({ breaker }: ResourceSettings): Breaker | undefined {
    if (breaker === undefined) return undefined;
    const made: Breaker = new Breaker(breaker, (from, to, window) => {
      if (!this.deps.events.has('breaker')) return;
      const counts = window && { window: made.counts };
      const observed = made.mode === 'observe';
      this.deps.events.emit('breaker', { resource: this.name, from, to, observed, ...counts });
    });
    return made;
  }

  private newGate({ rate }: ResourceSettings): RateGate | undefined {
    const { limiter, clock } = this.deps;
    return rate === undefined ? undefined : new RateGate(this.name, rate, limiter!, clock);
  }
}

function newThrottle({ throttle }: ResourceSettings): Throttle | undefined {
  return throttle && new Throttle(throttle);
}

function newGradient({ bulkhead }: ResourceSettings): Gradient | undefined {
  return bulkhead?.limit === 'gradient' ? new Gradient(bulkhead.maxInFlight) : undefined;
}

const NO_ARGUMENTS: readonly unknown[] = [];

function newBulkhead({ bulkhead }: ResourceSettings): Bulkhead | undefined {
  return bulkhead && new Bulkhead(bulkhead.maxInFlight, bulkhead.maxQueue);
}

const MAX_LABEL = 200;
const NO_TEXT = '(no label: not a text)';

/** Emits events of calls that take long, each of them once in each way. */
export class CallLog {
  constructor(
    private readonly resource: string,
    private readonly counts: ResourceCounts,
    private readonly events: EventHub<ProtectionEvents>,
  ) {}

  /** `micros` is how long the work has taken, or takes so far. */
  slow(run: Run, micros: number, { slow }: ResourceSettings): void {
    if (slow === undefined || run.wasSlow) return;
    run.wasSlow = true;
    const count = ++this.counts.slow;
    if ((count - 1) % slow.sampleEvery !== 0 || !this.events.has('slow')) return;
    const label = labelOf(run, slow.maxLabel);
    this.events.emit('slow', { resource: this.resource, ms: inMs(micros), label, count });
  }

  held(run: Run, micros: number, { slow }: ResourceSettings): void {
    this.counts.held++;
    if (!this.events.has('held')) return;
    const label = labelOf(run, slow?.maxLabel ?? MAX_LABEL);
    this.events.emit('held', { resource: this.resource, ms: inMs(micros), label });
  }
}

const inMs = (micros: number): number => Math.round(micros / 1000);

/** A label that cannot be made must not cost the call its answer. */
function labelOf({ options }: Run, longest: number): string | undefined {
  const label = options?.label;
  try {
    const text: unknown = typeof label === 'function' ? label() : label;
    if (text === undefined) return undefined;
    if (typeof text !== 'string') return isStrayPromise(text) ? '(no label: a promise)' : NO_TEXT;
    return text.length > longest ? `${text.slice(0, longest)}…` : text;
  } catch (error) {
    return `(no label: ${quotedError(error)})`;
  }
}

/**
 * The meaning of an error for the resource. A rejection by another resource, or by none, means
 * nothing: a pool that is full is not a server that is down.
 */
export function outcomeOf(error: unknown, isFailure: ResourceOptions['isFailure']): CallOutcome {
  // An error need not be one: even its name may throw, and the slot of its call would never be free again.
  try {
    if (error instanceof ProtectionRejectedError || error instanceof BigValueError)
      return 'neutral';
    if (isFailure === undefined) return isAbort(error) ? 'neutral' : 'failure';
    const verdict = isFailure(error);
    if (verdict === 'neutral') return 'neutral';
    if (isStrayPromise(verdict)) return 'failure';
    return verdict ? 'failure' : 'success';
  } catch {
    return 'failure';
  }
}

/** By name: what aborts with a reason of its own is no Error in every runtime. */
const isAbort = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'name' in error && error.name === 'AbortError';
