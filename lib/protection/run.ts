import { InvalidArgumentError } from '../common/errors.js';
import { rejectUnknown } from '../common/validate.js';
import { type Permit } from './breaker-state.js';
import { type Breaker } from './breaker.js';
import { type Bulkhead, type SlotWaiter } from './bulkhead.js';
import { BulkheadRejectedError, DeadlineExceededError } from './errors.js';
import { type ResourceSettings } from './resource-options.js';
import { type GiveUp } from './resource-stats.js';
import { Alarm } from './timer-wheel.js';

/** The argument of the protected work. */
export interface RunContext {
  /** Aborted when the deadline passes or the caller gives up. Made when it is first read. */
  readonly signal: AbortSignal;
  /** Milliseconds until the deadline; Infinity without one, never below 0. */
  readonly remainingMs: number;
}

/** The failure that a fallback answers for. */
export interface Failure extends RunContext {
  readonly resource: string;
  readonly error: unknown;
}

/** A protected call; `signal` ends it when its time is over. */
export type Work<T> = (run: RunContext) => T | PromiseLike<T>;

/** About one call. */
export interface RunOptions {
  /** Give up when aborted. */
  readonly signal?: AbortSignal;
  /** The run that this one is part of: its deadline and its caller's signal hold here as well. */
  readonly parent?: RunContext;
  /** The caller has its answer by then: waiting included, and whatever the resource allows. */
  readonly deadlineMs?: number;
  /** The call's name in the log of slow calls: a text, or a function that makes it if it is needed. */
  readonly label?: string | (() => string);
  /** The value to be sent; refused if it is bigger than `maxValueBytes`. */
  readonly value?: unknown;
  /** The arguments of the call, where the key of `rate` reads one of them. `@Protect` has those of the method. */
  readonly args?: readonly unknown[];
  /** Answers in the place of work that failed, was too slow, or was not let through. */
  readonly fallback?: (failure: Failure) => unknown;
}

/** The resource that a run belongs to. It counts what becomes of the run, and takes back what the run held. */
export interface RunOwner {
  readonly name: string;
  readonly settings: Pick<ResourceSettings, 'deadlineMicros' | 'maxWaitMicros'>;
  /** Calls whose work goes on. */
  readonly inFlight: number;
  now(): number;
  checkValue(value: unknown): void;
  /** A run that waited for its slot has one now. */
  goOn(run: Run): void;
  heldLong(run: Run, now: number): void;
  /** The caller has been given an answer, and it was not that of the work. */
  gaveUp(run: Run, why: GiveUp, wasRunning: boolean): void;
  /** The work has ended, and the caller is given its result. */
  cameBack(run: Run, isSuccess: boolean, error: unknown): void;
  /** The work has ended, and nobody waits for it any more. */
  cameLate(run: Run): void;
}

/** Where a run has its tokens from. */
export interface TokenSource {
  refund(): void;
}

enum Phase {
  /** Asks the limiter, or waits for a slot. */
  Waiting,
  Running,
  /** The caller has its answer, but the work goes on and holds its slot. */
  Overdue,
  Over,
}

/** One call on its way through what protects a resource. */
export class Run extends Alarm implements RunContext, SlotWaiter {
  queuedBefore: SlotWaiter | undefined = undefined;
  queuedAfter: SlotWaiter | undefined = undefined;
  queue: Bulkhead | undefined = undefined;

  breaker: Breaker | undefined = undefined;
  permit: Permit | undefined = undefined;
  /** Where it has a slot. */
  slotOf: Bulkhead | undefined = undefined;
  /** Where its tokens are from, until it begins and so uses them. */
  tokensOf: TokenSource | undefined = undefined;
  startedAt: number;
  /** By when the caller wants its answer, however long it waits before. Infinity: no matter when. */
  callerDueAt = Infinity;
  /** When work that has begun is given up. Infinity: never, or it has not begun. */
  dueAt = Infinity;
  /** True if it is the caller who has so little time, and not the resource that takes long. */
  isDueByCaller = false;
  wasStarted = false;
  wasSlow = false;
  options: RunOptions | undefined = undefined;
  callerSignal: AbortSignal | undefined = undefined;

  private phase = Phase.Waiting;
  private controller: AbortController | undefined = undefined;
  private givenUp: { readonly reason: unknown } | undefined = undefined;
  private resolve: ((value: unknown) => void) | undefined = undefined;
  private reject: ((reason: unknown) => void) | undefined = undefined;
  private onAbort: (() => void) | undefined = undefined;

  constructor(
    readonly resource: RunOwner,
    private readonly work: Work<unknown>,
    readonly beganAt: number,
  ) {
    super();
    this.startedAt = beganAt;
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.givenUp !== undefined) this.controller.abort(this.givenUp.reason);
    }
    return this.controller.signal;
  }

  get remainingMs(): number {
    if (this.dueAt === Infinity) return Infinity;
    return Math.max(0, this.dueAt - this.resource.now()) / 1000;
  }

  /** The time that the work has, or had; or the caller, if that was less. */
  get deadlineMs(): number {
    const [dueAt, from] = this.isDueByCaller
      ? [this.callerDueAt, this.beganAt]
      : [this.dueAt, this.startedAt];
    return Math.max(0, Math.round((dueAt - from) / 1000));
  }

  /** By when it has to have begun: waiting comes before the deadline, and is no part of it. */
  get beginBy(): number {
    return Math.min(this.callerDueAt, this.beganAt + this.resource.settings.maxWaitMicros);
  }

  /** The work begins; from here on its own deadline runs, within that of the caller. */
  start(now: number): void {
    const dueAt = now + this.resource.settings.deadlineMicros;
    this.startedAt = now;
    this.wasStarted = true;
    this.isDueByCaller = this.callerDueAt < dueAt;
    this.dueAt = this.isDueByCaller ? this.callerDueAt : dueAt;
  }

  get isOver(): boolean {
    return this.phase === Phase.Over;
  }

  listen(signal: AbortSignal): void {
    this.onAbort = () => this.giveUp('caller', signal.reason);
    signal.addEventListener('abort', this.onAbort);
  }

  /** Begins work that cannot be given up before it ends: its own promise is all that is needed. */
  async runToEnd(): Promise<unknown> {
    this.phase = Phase.Running;
    let value: unknown;
    try {
      value = await this.work(this);
    } catch (error) {
      this.end(false, error);
      throw error;
    }
    this.end(true, undefined);
    return value;
  }

  /** The caller's promise, which a deadline or an abort may settle before the work does. */
  answer(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** Begins the work. Whatever that does, it comes back to `end` once. */
  begin(): void {
    this.phase = Phase.Running;
    let result: Promise<unknown>;
    try {
      result = Promise.resolve(this.work(this));
    } catch (error) {
      return this.failed(error);
    }
    result.then(
      (value) => this.succeeded(value),
      (error: unknown) => this.failed(error),
    );
  }

  admitted(from: Bulkhead): void {
    this.slotOf = from;
    this.resource.goOn(this);
  }

  /** The deadline, the longest wait, or the time for a warning: whichever came first. */
  ring(): void {
    const { resource, phase, dueAt } = this;
    const now = resource.now();
    if (phase === Phase.Overdue || (phase === Phase.Running && now < dueAt)) {
      return resource.heldLong(this, now);
    }
    const { name, inFlight } = resource;
    if (phase === Phase.Running) {
      return this.giveUp('deadline', new DeadlineExceededError(name, this.deadlineMs, true));
    }
    const waitedMs = Math.round((now - this.beganAt) / 1000);
    if (this.queue === undefined || now >= this.callerDueAt) {
      return this.giveUp('deadline', new DeadlineExceededError(name, waitedMs, false));
    }
    this.giveUp('waited', new BulkheadRejectedError(name, 'waited', inFlight, waitedMs));
  }

  /** The caller's answer is an error, before the work has ended or even begun. */
  giveUp(why: GiveUp, reason: unknown): void {
    if (this.phase >= Phase.Overdue) return;
    const wasRunning = this.phase === Phase.Running;
    this.phase = wasRunning ? Phase.Overdue : Phase.Over;
    this.givenUp = { reason };
    this.stopListening();
    this.resource.gaveUp(this, why, wasRunning);
    this.controller?.abort(reason);
    this.reject?.(reason);
  }

  private succeeded(value: unknown): void {
    if (this.end(true, undefined)) this.resolve!(value);
  }

  private failed(error: unknown): void {
    if (this.end(false, error)) this.reject!(error);
  }

  /** The work has ended. False if the caller was given another answer before. */
  private end(isSuccess: boolean, error: unknown): boolean {
    const isLate = this.phase === Phase.Overdue;
    this.phase = Phase.Over;
    if (isLate) {
      this.resource.cameLate(this);
      return false;
    }
    this.stopListening();
    this.resource.cameBack(this, isSuccess, error);
    return true;
  }

  private stopListening(): void {
    if (this.onAbort === undefined) return;
    this.callerSignal!.removeEventListener('abort', this.onAbort);
    this.onAbort = undefined;
  }
}

const KNOWN_OPTIONS: readonly (keyof RunOptions)[] = [
  ...(['signal', 'parent', 'deadlineMs', 'label', 'value', 'args', 'fallback'] as const),
];

/** The caller's deadline stands beside the resource's: whichever ends first holds. */
export function takeOptions(run: Run, options: RunOptions, now: number): void {
  rejectUnknown('run', options, KNOWN_OPTIONS);
  run.options = options;
  if (options.value !== undefined) run.resource.checkValue(options.value);
  run.callerDueAt = callersDueAt(options, now);
  run.isDueByCaller = run.callerDueAt !== Infinity;
  const signal = callersSignal(options);
  if (signal !== undefined) {
    run.callerSignal = signal;
    signal.throwIfAborted();
    run.listen(signal);
  }
  if (run.callerDueAt <= now) {
    throw new DeadlineExceededError(run.resource.name, run.deadlineMs, false);
  }
}

/** By when the caller wants its answer; Infinity if that does not matter. */
export function callersDueAt({ deadlineMs, parent }: CallersTime, now: number): number {
  if (deadlineMs !== undefined && !(deadlineMs > 0)) {
    throw new InvalidArgumentError('run.deadlineMs', deadlineMs, 'milliseconds above 0');
  }
  const own = deadlineMs === undefined ? Infinity : now + deadlineMs * 1000;
  if (parent === undefined) return own;
  return Math.min(own, parent instanceof Run ? parent.dueAt : now + parent.remainingMs * 1000);
}

/** Its own signal, that of the run which this one is part of, or both. */
export function callersSignal({ signal, parent }: CallersTime): AbortSignal | undefined {
  const parents = parent instanceof Run ? parent.callerSignal : parent?.signal;
  if (signal === undefined || parents === undefined) return signal ?? parents;
  return AbortSignal.any([signal, parents]);
}

type CallersTime = Pick<RunOptions, 'signal' | 'parent' | 'deadlineMs'>;
