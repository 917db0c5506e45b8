import { type Cancel, type Clock } from '../common/clock.js';
import { AcquireTimeoutError, LimiterClosedError, TooManyWaitersError } from '../common/errors.js';
import { type Decision } from './decision.js';
import { type AcquireOptions } from './rate-limiter.js';

/** The turn of a caller. */
export interface LineTask {
  readonly policy: string;
  /** The buckets that the tokens come from. */
  readonly buckets: readonly string[];
  readonly maxWaiters: number;
  /** Whether other processes, unseen here, may bring tokens back. */
  readonly isShared: boolean;
  tryTake(): Decision | Promise<Decision>;
  giveBack(decision: Decision): void;
}

interface Waiter {
  readonly task: LineTask;
  readonly timeoutMs: number | undefined;
  readonly deadlineMicros: number;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (reason: unknown) => void;
  /** Set once the caller has its answer. */
  done: boolean;
  /** Set while the caller has its tokens and is held back by a shaper. */
  delayed: Decision | undefined;
  stopListening: Cancel | undefined;
  cancelDelay: Cancel | undefined;
  cancelDeadline: Cancel | undefined;
  /** The neighbours in the line, and whether there is a place in it at all. */
  before: Waiter | undefined;
  behind: Waiter | undefined;
  isInLine: boolean;
}

/** Linked, so that leaving is as cheap from the middle of a long line as from its end. */
class Queue {
  first: Waiter | undefined;
  length = 0;
  private last: Waiter | undefined;

  push(waiter: Waiter): void {
    waiter.isInLine = true;
    waiter.before = this.last;
    if (this.last === undefined) this.first = waiter;
    else this.last.behind = waiter;
    this.last = waiter;
    this.length++;
  }

  remove(waiter: Waiter): void {
    if (!waiter.isInLine) return;
    const { before, behind } = waiter;
    if (before === undefined) this.first = behind;
    else before.behind = behind;
    if (behind === undefined) this.last = before;
    else behind.before = before;
    waiter.isInLine = false;
    waiter.before = waiter.behind = undefined;
    this.length--;
  }
}

/**
 * The first in line of a shared bucket tries again after that time at the latest: another process may
 * have reset it. One more than denials are remembered, because timers fire up to a millisecond early.
 */
const LONGEST_PAUSE_MS = 1001;

/**
 * Callers that wait for tokens of one key. Only the first in line tries; the others get their turn
 * in the order in which they came. Nobody waits for tokens that will come too late.
 */
export class WaitingLine {
  private readonly queue = new Queue();
  private readonly delayed = new Set<Waiter>();
  private cancelTimer: Cancel | undefined;
  /** When the first in line expects its tokens; no caller behind can be served earlier. */
  private dueMicros = 0;
  private busy = false;
  private wokenWhileBusy = false;
  private closed = false;
  /** The buckets under which the line can be found. */
  readonly noted = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly onEmpty: () => void,
    /** The policy or app whose tokens it waits for. */
    readonly policy = '',
  ) {}

  /** How many wait, also those that have their tokens and are held back by a shaper. */
  get length(): number {
    return this.queue.length + this.delayed.size;
  }

  join(task: LineTask, options: AcquireOptions): Promise<Decision> {
    const { timeoutMs, signal } = options;
    return new Promise((resolve, reject) => {
      const rejection = this.rejectionOf(task, options);
      if (rejection !== undefined) {
        this.endIfEmpty();
        rejectWith(reject, rejection.reason);
        return;
      }
      const deadlineMicros =
        timeoutMs === undefined ? Infinity : this.clock.now() + timeoutMs * 1000;
      const waiter: Waiter = {
        task,
        timeoutMs,
        deadlineMicros,
        resolve,
        reject,
        done: false,
        delayed: undefined,
        stopListening: undefined,
        cancelDelay: undefined,
        cancelDeadline: undefined,
        before: undefined,
        behind: undefined,
        isInLine: false,
      };
      if (signal !== undefined) this.listen(waiter, signal);
      this.queue.push(waiter);
      if (this.queue.length === 1) this.serve();
      else if (deadlineMicros < Infinity) this.armDeadline(waiter, timeoutMs!);
    });
  }

  private listen(waiter: Waiter, signal: AbortSignal): void {
    const abort = (): void => {
      // It is gone by itself. To look for it again takes as long as the signal has listeners.
      waiter.stopListening = undefined;
      this.leave(waiter, signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    waiter.stopListening = () => signal.removeEventListener('abort', abort);
  }

  /** Tokens of a bucket came back before their time: callers that wait for them need not wait longer. */
  wake(bucket: string): void {
    if (this.queue.first?.task.buckets.includes(bucket) !== true) return;
    this.wokenWhileBusy = this.busy;
    if (this.busy) return;
    this.cancelTimer?.();
    this.serve();
  }

  close(): void {
    this.closed = true;
    this.cancelTimer?.();
    const reason = new LimiterClosedError();
    for (let first = this.queue.first; first !== undefined; first = this.queue.first) {
      this.leave(first, reason);
    }
    for (const waiter of [...this.delayed]) this.leave(waiter, reason);
  }

  private rejectionOf(task: LineTask, options: AcquireOptions): { reason: unknown } | undefined {
    const { timeoutMs, signal } = options;
    if (signal?.aborted) return { reason: signal.reason };
    if (this.queue.length >= task.maxWaiters) {
      return { reason: new TooManyWaitersError(task.policy, task.maxWaiters) };
    }
    const waitMicros = this.dueMicros - this.clock.now();
    if (timeoutMs === undefined || this.queue.length === 0 || waitMicros <= timeoutMs * 1000) {
      return undefined;
    }
    return { reason: timedOut(task, timeoutMs, waitMicros) };
  }

  /** Serves from the front until a caller has to wait, for a timer or for the store. */
  private serve(): void {
    if (this.busy || this.closed) return;
    this.busy = true;
    this.cancelTimer?.();
    for (let first = this.queue.first; first !== undefined; first = this.queue.first) {
      const answer = this.ask(first);
      if (answer instanceof Promise) {
        this.boundWait(first);
        void answer.then((decision) => {
          this.busy = false;
          const goesOn = this.settle(first, decision) || this.wokenWhileBusy;
          this.wokenWhileBusy = false;
          if (goesOn) this.serve();
        });
        return;
      }
      if (!this.settle(first, answer)) break;
    }
    this.busy = false;
    this.endIfEmpty();
  }

  /** The decision, or undefined if asking failed, which ends the waiter. */
  private ask(waiter: Waiter): Decision | undefined | Promise<Decision | undefined> {
    const fail = (error: unknown): undefined => {
      this.leave(waiter, error);
      return undefined;
    };
    try {
      const answer = waiter.task.tryTake();
      return answer instanceof Promise ? answer.catch(fail) : answer;
    } catch (error) {
      return fail(error);
    }
  }

  /** Serves the first in line. False if it stays, and a timer is set. */
  private settle(waiter: Waiter, decision: Decision | undefined): boolean {
    if (decision === undefined) return true;
    const { task } = waiter;
    if (waiter.done) {
      if (decision.allowed) task.giveBack(decision);
      return true;
    }
    // From here on the line decides whether it is too late; a tie goes to the caller.
    waiter.cancelDeadline?.();
    const now = this.clock.now();
    const waitMicros = (decision.allowed ? decision.delayMs : decision.retryAfterMs) * 1000;
    const isHere = decision.allowed && waitMicros === 0;
    if (!isHere && now + waitMicros > waiter.deadlineMicros) {
      if (decision.allowed) task.giveBack(decision);
      this.leave(waiter, timedOut(task, waiter.timeoutMs ?? 0, waitMicros));
      return true;
    }
    if (decision.allowed) {
      this.queue.remove(waiter);
      this.release(waiter, decision);
      return true;
    }
    this.dueMicros = now + waitMicros;
    const waitMs = Math.max(1, waitMicros / 1000);
    const nextMs = task.isShared ? Math.min(waitMs, LONGEST_PAUSE_MS) : waitMs;
    this.cancelTimer = this.clock.after(nextMs, () => this.serve());
    return false;
  }

  /** Lets the caller go, after the delay that a shaper imposed. */
  private release(waiter: Waiter, decision: Decision): void {
    const { delayMs } = decision;
    const go = (): void => this.finish(waiter, () => waiter.resolve(afterDelay(decision)));
    if (delayMs === 0) return go();
    waiter.delayed = decision;
    this.delayed.add(waiter);
    waiter.cancelDelay = this.clock.after(delayMs, go);
  }

  /** The deadline also ends a wait for the store, unless the caller's timeout was 0. */
  private boundWait(waiter: Waiter): void {
    const leftMs = (waiter.deadlineMicros - this.clock.now()) / 1000;
    if (waiter.timeoutMs === 0 || leftMs === Infinity) return;
    waiter.cancelDeadline?.();
    this.armDeadline(waiter, Math.max(0, leftMs));
  }

  private armDeadline(waiter: Waiter, timeoutMs: number): void {
    waiter.cancelDeadline = this.clock.after(timeoutMs, () => {
      // A longer time than a timer can hold is waited for in steps.
      const leftMicros = waiter.deadlineMicros - this.clock.now();
      if (leftMicros > 0) return this.armDeadline(waiter, leftMicros / 1000);
      const waitMicros = Math.max(0, this.dueMicros - this.clock.now());
      this.leave(waiter, timedOut(waiter.task, waiter.timeoutMs ?? 0, waitMicros));
    });
  }

  /** Ends a waiter that gets no tokens. If it was first, the next one tries. */
  private leave(waiter: Waiter, reason: unknown): void {
    if (waiter.done) return;
    const wasFirst = this.queue.first === waiter;
    if (waiter.delayed !== undefined) waiter.task.giveBack(waiter.delayed);
    this.queue.remove(waiter);
    this.finish(waiter, () => rejectWith(waiter.reject, reason));
    if (!wasFirst || this.busy) return;
    this.cancelTimer?.();
    this.dueMicros = 0;
    this.serve();
  }

  private finish(waiter: Waiter, answer: () => void): void {
    if (waiter.done) return;
    waiter.done = true;
    waiter.cancelDeadline?.();
    waiter.cancelDelay?.();
    waiter.stopListening?.();
    answer();
    if (this.delayed.delete(waiter)) this.endIfEmpty();
  }

  private endIfEmpty(): void {
    if (!this.busy && this.queue.length === 0 && this.delayed.size === 0) this.onEmpty();
  }
}

/** The decision as it looks once the wait is over. */
function afterDelay(decision: Decision): Decision {
  if (decision.delayMs === 0) return decision;
  const { decisions } = decision;
  const over = { ...decision, delayMs: 0 };
  return decisions === undefined ? over : { ...over, decisions: decisions.map(afterDelay) };
}

/** The reason of an abort signal is passed on as it is, and need not be an error. */
function rejectWith(reject: (reason: unknown) => void, reason: unknown): void {
  reject(reason);
}

function timedOut(task: LineTask, timeoutMs: number, waitMicros: number): AcquireTimeoutError {
  return new AcquireTimeoutError(task.policy, timeoutMs, Math.ceil(waitMicros / 1000));
}
