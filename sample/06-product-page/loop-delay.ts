import { createHistogram, monitorEventLoopDelay, type Histogram } from 'node:perf_hooks';

/** How often it is looked whether the event loop comes round. */
const EVERY_MS = 5;
const NANOS = 1e6;

export interface Spread {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

/**
 * How late the event loop is, as those see it who come at any moment. While it stands still for half a
 * second many may come, and each of them waits; Node's own monitor counts that as one late look among
 * thousands of good ones.
 */
export class LoopDelay {
  private readonly waits = createHistogram();
  private readonly monitor = monitorEventLoopDelay({ resolution: EVERY_MS });
  private timer: NodeJS.Timeout | undefined;
  private dueAt = Infinity;
  private lostMs = 0;

  begin(): void {
    this.monitor.enable();
    this.dueAt = performance.now() + EVERY_MS;
    this.timer = setInterval(() => this.look(), EVERY_MS).unref();
  }

  end(): void {
    clearInterval(this.timer);
    this.dueAt = Infinity;
    this.monitor.disable();
  }

  /** How long it has stood still so far, all in all: between two moments it is what nobody could use. */
  lostBy(now: number): number {
    return this.lostMs + Math.max(0, now - this.dueAt);
  }

  /** What somebody would have had to wait. */
  spread(): Spread {
    return spreadOf(this.waits);
  }

  /** What Node's own monitor says. */
  monitored(): Spread {
    return spreadOf(this.monitor, EVERY_MS);
  }

  private look(): void {
    const now = performance.now();
    // Who had come just then waited for all of it, who came later for less.
    let lateMs = Math.max(0, now - this.dueAt);
    this.lostMs += lateMs;
    do {
      this.waits.record(nanosOf(lateMs));
      lateMs -= EVERY_MS;
    } while (lateMs > 0);
    this.dueAt = now + EVERY_MS;
  }
}

/** A histogram takes nothing below one. */
export function nanosOf(ms: number): number {
  return Math.max(1, Math.round(ms * NANOS));
}

export function spreadOf(histogram: Histogram, lessMs = 0): Spread {
  const { count } = histogram;
  const ms = (percent: number): number =>
    count === 0 ? 0 : Math.max(0, histogram.percentile(percent) / NANOS - lessMs);
  return { count, p50Ms: ms(50), p99Ms: ms(99), p999Ms: ms(99.9), maxMs: ms(100) };
}
