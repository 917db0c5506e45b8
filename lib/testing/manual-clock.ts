import { type Cancel, type Clock } from '../common/clock.js';

interface Timer {
  dueMicros: number;
  readonly order: number;
  readonly task: () => void;
  readonly intervalMicros?: number;
}

/**
 * A clock that stands still until it is moved. Timers run in the order in which they are due.
 *
 * Give it to `RateLimitModule.forRoot({ clock })`, `createRateLimiter({ clock })` or
 * `overrideRateLimits`, and limits depend on nothing but what the test does.
 */
export class ManualClock implements Clock {
  private readonly timers = new Set<Timer>();
  private micros: number;
  private created = 0;

  /** `startMicros` is what `now()` says first; `epochOffsetMs` the wall clock's time at its zero. */
  constructor(
    startMicros = 1_000_000_000,
    private readonly epochOffsetMs = 1_700_000_000_000,
  ) {
    this.micros = startMicros;
  }

  now(): number {
    return this.micros;
  }

  epochMs(nowMicros: number): number {
    return this.epochOffsetMs + nowMicros / 1000;
  }

  after(delayMs: number, task: () => void): Cancel {
    return this.add({ dueMicros: this.micros + delayMs * 1000, order: this.created++, task });
  }

  every(intervalMs: number, task: () => void): Cancel {
    const intervalMicros = intervalMs * 1000;
    const dueMicros = this.micros + intervalMicros;
    return this.add({ dueMicros, order: this.created++, task, intervalMicros });
  }

  /** Not a matter of time: the event loop turns whether the clock is moved or not. */
  soon(task: () => void): Cancel {
    const immediate = setImmediate(task);
    return () => clearImmediate(immediate);
  }

  random(): number {
    return Math.random();
  }

  /** How many timers are set, sweeps included. */
  get pending(): number {
    return this.timers.size;
  }

  /** Moves on, running what falls due on the way. */
  advance(ms: number): void {
    this.advanceMicros(ms * 1000);
  }

  /** The same in the clock's own unit. */
  advanceMicros(micros: number): void {
    const until = this.micros + micros;
    for (let next = this.next(until); next !== undefined; next = this.next(until)) this.run(next);
    this.micros = until;
  }

  /** The same, letting promises settle after each timer, as they would in real time. */
  async advanceAsync(ms: number): Promise<void> {
    const until = this.micros + ms * 1000;
    await settle();
    for (let next = this.next(until); next !== undefined; next = this.next(until)) {
      this.run(next);
      await settle();
    }
    this.micros = until;
  }

  /** Time as a broken clock has it: no timer runs. */
  jump(micros: number): void {
    this.micros += micros;
  }

  private add(timer: Timer): Cancel {
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  private next(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) {
      if (timer.dueMicros > until) continue;
      if (first === undefined || isBefore(timer, first)) first = timer;
    }
    return first;
  }

  private run(timer: Timer): void {
    this.micros = Math.max(this.micros, timer.dueMicros);
    if (timer.intervalMicros === undefined) this.timers.delete(timer);
    else timer.dueMicros += timer.intervalMicros;
    timer.task();
  }
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.dueMicros < b.dueMicros || (a.dueMicros === b.dueMicros && a.order < b.order);
}

/** Lets every promise that can settle do so, and one turn of the event loop pass. */
export async function settle(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
