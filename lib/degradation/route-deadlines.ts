import { type Cancel, type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { type DegradeOptions } from './degrade-options.js';

/** How long a handler is waited for; undefined where it is waited for as long as it takes. */
export interface CallPatience {
  readonly isRead: boolean;
  /** Until the levels are tried. */
  readonly slow: CallDeadlines | undefined;
  /** From then on until it is given up. */
  readonly rest: CallDeadlines | undefined;
  /** After which a request has its answer, if it may have another than the handler's. */
  readonly deadlineMs: number;
}

export interface RoutePatience {
  readonly reads: CallPatience;
  readonly writes: CallPatience;
}

/** What holds for routes that say nothing else. */
export interface UsualPatience {
  readonly deadlineMs: number;
  readonly slowMs: number;
}

/** The lines in which calls wait: one for all that may take equally long. */
export class PatienceLines {
  private readonly lines = new Map<number, CallDeadlines>();

  constructor(private readonly clock: Clock) {}

  /** To cut a write short tells nobody whether it was done, so it has to be asked for. */
  of(at: string, { slow, deadline }: DegradeOptions, usual: UsualPatience): RoutePatience {
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
    const rest = this.line(deadlineMs - slowMs);
    const slowWrite = ownDeadlineMs ? this.line(ownDeadlineMs) : undefined;
    return {
      reads: { isRead: true, slow: this.line(slowMs), rest, deadlineMs },
      writes: { isRead: false, slow: slowWrite, rest: undefined, deadlineMs },
    };
  }

  /** Forgets lines in which nobody will wait any more. */
  keep(used: Iterable<RoutePatience>): void {
    const kept = new Set<CallDeadlines | undefined>();
    for (const { reads, writes } of used) kept.add(reads.slow).add(reads.rest).add(writes.slow);
    for (const [patienceMs, line] of this.lines) {
      if (!kept.has(line) && line.isEmpty) this.lines.delete(patienceMs);
    }
  }

  close(): void {
    for (const line of this.lines.values()) line.close();
  }

  private line(patienceMs: number): CallDeadlines {
    let line = this.lines.get(patienceMs);
    if (line === undefined) {
      this.lines.set(patienceMs, (line = new CallDeadlines(patienceMs, this.clock)));
    }
    return line;
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
 * one timer for the first of them is enough: under load that is one for hundreds of calls.
 */
export class CallDeadlines {
  private first: Awaited | undefined;
  private last: Awaited | undefined;
  private cancel: Cancel | undefined;

  constructor(
    readonly patienceMs: number,
    private readonly clock: Pick<Clock, 'now' | 'after'>,
  ) {}

  add(call: Awaited, nowMicros: number): void {
    call.overdueAt = nowMicros + this.patienceMs * 1000;
    call.before = this.last;
    call.after = undefined;
    if (this.last === undefined) this.first = call;
    else this.last.after = call;
    this.last = call;
    this.cancel ??= this.clock.after(this.patienceMs, this.look);
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
