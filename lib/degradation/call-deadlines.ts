import { type Cancel, type Clock } from '../common/clock.js';

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
