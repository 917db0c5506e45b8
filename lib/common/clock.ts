// The import is a little quicker than the global of the same name, which is a getter.
import { performance } from 'node:perf_hooks';

/**
 * Time, as everything here sees it.
 *
 * `now()` is monotonic and counts microseconds, the unit of Redis `TIME`; the fraction carries the
 * nanoseconds. It has no meaning outside this process: compare it only with itself.
 */
export interface Clock {
  /** Monotonic microseconds. */
  now(): number;
  /** Wall-clock milliseconds of an instant of `now()`, for logs and headers. */
  epochMs(nowMicros: number): number;
  /** Runs `task` once, `delayMs` from now. */
  after(delayMs: number, task: () => void): Cancel;
  /** Runs `task` again and again without keeping the process alive. */
  every(intervalMs: number, task: () => void): Cancel;
  /** Runs `task` in this turn of the event loop, once what has arrived was read. */
  soon(task: () => void): Cancel;
  /** From 0 up to 1, by chance: spreads what many processes would do at the same instant. */
  random(): number;
}

/** Takes back a timer, or ends a listener. */
export type Cancel = () => void;

/** Node fires a longer timer at once, so longer waits are taken in steps of this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** How long the distance between the two clocks is trusted; NTP moves only one of them. */
const CALIBRATION_MICROS = 1_000_000;

export class SystemClock implements Clock {
  private offsetMs = 0;
  private calibratedUntil = -1;

  now(): number {
    return performance.now() * 1000;
  }

  epochMs(nowMicros: number): number {
    if (nowMicros > this.calibratedUntil) this.calibrate();
    return this.offsetMs + nowMicros * 0.001;
  }

  after(delayMs: number, task: () => void): Cancel {
    const timer = setTimeout(task, Math.min(delayMs, LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  }

  every(intervalMs: number, task: () => void): Cancel {
    const timer = setInterval(task, intervalMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  soon(task: () => void): Cancel {
    const immediate = setImmediate(task);
    return () => clearImmediate(immediate);
  }

  random(): number {
    return Math.random();
  }

  private calibrate(): void {
    const now = performance.now();
    this.offsetMs = Date.now() - now;
    this.calibratedUntil = now * 1000 + CALIBRATION_MICROS;
  }
}

/** The clock of Redis, whose instants are wall-clock microseconds. */
export const EPOCH_CLOCK: Pick<Clock, 'epochMs'> = { epochMs: (nowMicros) => nowMicros / 1000 };

const LONGEST_LATER_MS = 3_600_000;

/**
 * Runs `task` once, after that time or, if that is long, after an hour. Unlike `after` it does not
 * keep the process alive; so it is for work in the background.
 */
export function later(clock: Pick<Clock, 'every'>, delayMs: number, task: () => void): Cancel {
  const cancel = clock.every(Math.min(Math.max(delayMs, 0), LONGEST_LATER_MS), () => {
    cancel();
    task();
  });
  return cancel;
}
