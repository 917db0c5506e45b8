import { type Cancel, type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { type DegradeOptions } from './degrade-options.js';

/** How long a handler is waited for; undefined where it is waited for as long as it takes. */
export interface CallDeadline {
  readonly isRead: boolean;
  /** Until the levels are tried. */
  readonly slow: DeadlineQueue | undefined;
  /** From then on until it is given up. */
  readonly rest: DeadlineQueue | undefined;
  /** After which a request has its answer, if it may have another than the handler's. */
  readonly deadlineMs: number;
}

export interface RouteDeadlines {
  readonly reads: CallDeadline;
  readonly writes: CallDeadline;
}

/** The deadlines of routes without their own. */
export interface DefaultDeadlines {
  readonly deadlineMs: number;
  readonly slowMs: number;
}

/** One queue for all calls that may take equally long. */
export class DeadlineQueues {
  private readonly queues = new Map<number, DeadlineQueue>();

  constructor(private readonly clock: Clock) {}

  /** A write that is cut short may have been done or not, so only a deadline of the route itself does that. */
  of(at: string, { slow, deadline }: DegradeOptions, usual: DefaultDeadlines): RouteDeadlines {
    const ownDeadlineMs = deadline && durationMs(deadline, `${at}.deadline`);
    const deadlineMs = ownDeadlineMs || usual.deadlineMs;
    const slowMs = slow ? durationMs(slow, `${at}.slow`) : Math.min(usual.slowMs, deadlineMs / 2);
    if (slowMs >= deadlineMs) {
      throw new InvalidArgumentError(
        `${at}.slow`,
        slow,
        `less than the deadline, ${deadlineMs} ms`,
      );
    }
    const rest = this.queue(deadlineMs - slowMs);
    const slowWrite = ownDeadlineMs ? this.queue(ownDeadlineMs) : undefined;
    return {
      reads: { isRead: true, slow: this.queue(slowMs), rest, deadlineMs },
      writes: { isRead: false, slow: slowWrite, rest: undefined, deadlineMs },
    };
  }

  /** Forgets queues in which no call will wait any more. */
  keep(used: Iterable<RouteDeadlines>): void {
    const kept = new Set<DeadlineQueue | undefined>();
    for (const { reads, writes } of used) kept.add(reads.slow).add(reads.rest).add(writes.slow);
    for (const [timeoutMs, queue] of this.queues) {
      if (!kept.has(queue) && queue.isEmpty) this.queues.delete(timeoutMs);
    }
  }

  close(): void {
    for (const queue of this.queues.values()) queue.close();
  }

  private queue(timeoutMs: number): DeadlineQueue {
    let queue = this.queues.get(timeoutMs);
    if (queue === undefined) {
      this.queues.set(timeoutMs, (queue = new DeadlineQueue(timeoutMs, this.clock)));
    }
    return queue;
  }
}

/** Something that is waited for, as a link of the list it waits in. */
export interface Awaited {
  /** Instant of the clock, in microseconds, at which it has taken too long. */
  overdueAt: number;
  before: Awaited | undefined;
  after: Awaited | undefined;
  overdue(): void;
}

/**
 * Calls that all may take equally long. They come in the order in which their time will be over, so
 * one timer for the first of them is enough: under load that is one for hundreds of calls. Not protection's timer
 * wheel: that sorts calls of any deadline into ticks of 2 ms, while here the order is given, and no call is late by a tick.
 */
export class DeadlineQueue {
  private first: Awaited | undefined;
  private last: Awaited | undefined;
  private cancel: Cancel | undefined;

  constructor(
    readonly timeoutMs: number,
    private readonly clock: Pick<Clock, 'now' | 'after'>,
  ) {}

  add(call: Awaited, nowMicros: number): void {
    call.overdueAt = nowMicros + this.timeoutMs * 1000;
    call.before = this.last;
    call.after = undefined;
    if (this.last === undefined) this.first = call;
    else this.last.after = call;
    this.last = call;
    this.cancel ??= this.clock.after(this.timeoutMs, this.look);
  }

  /** Taking out what is not in the list any more does nothing. */
  remove(call: Awaited): void {
    const { before, after } = call;
    if (before === undefined && this.first !== call) return;
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.last = before;
    else after.before = before;
    call.before = call.after = undefined;
  }

  get isEmpty(): boolean {
    return this.first === undefined;
  }

  /** Forgets all that is waited for. */
  close(): void {
    this.cancel?.();
    this.cancel = this.first = this.last = undefined;
  }

  private readonly look = (): void => {
    this.cancel = undefined;
    const now = this.clock.now();
    let call = this.first;
    while (call !== undefined && call.overdueAt <= now) {
      this.remove(call);
      call.overdue();
      call = this.first;
    }
    if (call === undefined) return;
    // Node's timers may come a little early.
    const leftMs = Math.max(1, Math.ceil((call.overdueAt - now) / 1000));
    this.cancel ??= this.clock.after(leftMs, this.look);
  };
}
