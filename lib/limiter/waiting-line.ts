import { type Cancel, type Clock } from '../common/clock.js';
import { AcquireTimeoutError, LimiterClosedError, TooManyWaitersError } from '../common/errors.js';
import { type Decision } from './decision.js';
import { type AcquireOptions } from './rate-limiter.js';

/** What a line waits for. */
export interface LineTask {
  readonly policy: string;
  readonly maxWaiters: number;
  tryTake(): Decision | Promise<Decision>;
  giveBack(): void;
}

interface Waiter {
  readonly task: LineTask;
  readonly timeoutMs: number | undefined;
  readonly deadlineMicros: number;
  /** Set once the caller has its answer, whatever it was. */
  done: boolean;
  /** Has its tokens, and is held back by a shaper. */
  delayed: boolean;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (reason: unknown) => void;
  readonly cleanUp: Cancel[];
}

/**
 * Callers that wait for tokens of one key. Only the first in line tries; the others get their turn
 * in the order in which they came. Nobody waits for tokens that will come too late.
 */
export class WaitingLine {
  private readonly waiters: Waiter[] = [];
  private readonly delayed = new Set<Waiter>();
  private cancelTimer: Cancel | undefined;
  /** When the first in line expects its tokens; nobody behind can be served earlier. */
  private dueMicros = 0;
  private busy = false;

  constructor(
    private readonly clock: Clock,
    private readonly onEmpty: () => void,
  ) {}

  join(task: LineTask, options: AcquireOptions): Promise<Decision> {
    const { timeoutMs, signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(asError(signal.reason));
      if (this.waiters.length >= task.maxWaiters) {
        return reject(new TooManyWaitersError(task.policy, task.maxWaiters));
      }
      const now = this.clock.now();
      const deadlineMicros = timeoutMs === undefined ? Infinity : now + timeoutMs * 1000;
      if (this.waiters.length > 0 && this.dueMicros > deadlineMicros) {
        return reject(timedOut(task, timeoutMs!, this.dueMicros - now));
      }
      const waiter: Waiter = {
        task,
        timeoutMs,
        deadlineMicros,
        done: false,
        delayed: false,
        resolve,
        reject,
        cleanUp: [],
      };
      if (signal !== undefined) {
        const abort = (): void => this.leave(waiter, asError(signal.reason));
        signal.addEventListener('abort', abort, { once: true });
        waiter.cleanUp.push(() => signal.removeEventListener('abort', abort));
      }
      this.waiters.push(waiter);
      if (this.waiters.length === 1) void this.serve();
      else if (timeoutMs !== undefined) this.armDeadline(waiter, timeoutMs);
    });
  }

  close(): void {
    this.cancelTimer?.();
    for (const waiter of [...this.waiters, ...this.delayed])
      this.leave(waiter, new LimiterClosedError());
  }

  /** Serves from the front until somebody has to wait. */
  private async serve(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      for (let first = this.waiters[0]; first !== undefined; first = this.waiters[0]) {
        if (!(await this.serveFirst(first))) return;
      }
    } finally {
      this.busy = false;
    }
    this.endIfEmpty();
  }

  /** False if the first in line has to wait for a timer. */
  private async serveFirst(waiter: Waiter): Promise<boolean> {
    const { task } = waiter;
    let decision: Decision;
    try {
      const answer = task.tryTake();
      decision = answer instanceof Promise ? await answer : answer;
    } catch (error) {
      this.leave(waiter, error);
      return true;
    }
    if (waiter.done) {
      if (decision.allowed) task.giveBack();
      return true;
    }
    const now = this.clock.now();
    const waitMicros = (decision.allowed ? decision.delayMs : decision.retryAfterMs) * 1000;
    if (now + waitMicros > waiter.deadlineMicros) {
      if (decision.allowed) task.giveBack();
      this.leave(waiter, timedOut(task, waiter.timeoutMs ?? 0, waitMicros));
      return true;
    }
    if (decision.allowed) {
      this.remove(waiter);
      this.release(waiter, decision, waitMicros / 1000);
      return true;
    }
    this.dueMicros = now + waitMicros;
    this.cancelTimer = this.clock.after(Math.max(1, waitMicros / 1000), () => void this.serve());
    return false;
  }

  /** Lets the caller go, after the delay that a shaper imposed. */
  private release(waiter: Waiter, decision: Decision, delayMs: number): void {
    const go = (): void => this.finish(waiter, () => waiter.resolve(decision));
    if (delayMs === 0) return go();
    waiter.delayed = true;
    this.delayed.add(waiter);
    waiter.cleanUp.push(this.clock.after(delayMs, go));
  }

  private armDeadline(waiter: Waiter, timeoutMs: number): void {
    waiter.cleanUp.push(
      this.clock.after(timeoutMs, () => {
        const waitMicros = Math.max(0, this.dueMicros - this.clock.now());
        this.leave(waiter, timedOut(waiter.task, timeoutMs, waitMicros));
      }),
    );
  }

  /** Ends a waiter that gets no tokens. If it was first, the next one tries. */
  private leave(waiter: Waiter, reason: unknown): void {
    if (waiter.done) return;
    const wasFirst = this.waiters[0] === waiter;
    if (waiter.delayed) waiter.task.giveBack();
    this.remove(waiter);
    this.finish(waiter, () => waiter.reject(reason));
    if (!wasFirst || this.busy) return;
    this.cancelTimer?.();
    void this.serve();
  }

  private remove(waiter: Waiter): void {
    const index = this.waiters.indexOf(waiter);
    if (index >= 0) this.waiters.splice(index, 1);
  }

  private finish(waiter: Waiter, answer: () => void): void {
    if (waiter.done) return;
    waiter.done = true;
    for (const cancel of waiter.cleanUp) cancel();
    answer();
    if (this.delayed.delete(waiter)) this.endIfEmpty();
  }

  private endIfEmpty(): void {
    if (this.waiters.length === 0 && this.delayed.size === 0) this.onEmpty();
  }
}

function timedOut(task: LineTask, timeoutMs: number, waitMicros: number): AcquireTimeoutError {
  return new AcquireTimeoutError(task.policy, timeoutMs, Math.ceil(waitMicros / 1000));
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
