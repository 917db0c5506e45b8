import { performance } from 'node:perf_hooks';

/** The turn of the event loop, as far as the line has to know it. Times in microseconds. */
export interface Turns {
  /**
   * How long ago this turn's poll returned, at least. Whatever is read in a turn was there by then, so
   * this is a lower bound of how long it has waited for the loop.
   */
  age(now: number): number;
  /** When the loop last had nothing to do. */
  readonly restedAt: number;
  /** The line only observes, and so has no slice that would end a turn. */
  isObserved: boolean;
  /** The line has run its slice; whatever comes from now on is read in another turn. */
  ended(): void;
}

/** The figures that Node keeps of its loop. */
export interface LoopTiming {
  /** Milliseconds in which the loop had nothing to do, in all. */
  readonly idleTime: number;
  /** Missing in runtimes that do not count turns. */
  readonly uvMetricsInfo?: { readonly loopCount: number };
}

/** A loop whose polls waited for so long has rested. */
const REST_MS = 0.2;
/** A turn as long as this is none: the clock has jumped. */
const ABSURD_MICROS = 3_600_000_000;

/**
 * The turns of this thread's event loop, which are known by their number. Time is read only when age() or ended() is
 * called: by work that comes, and by the line when its slice is over.
 *
 * Nobody sees the end of a turn in which the line had nothing to do: an immediate would, and would be most of what a
 * request pays for the line. So work that came after the last question counts to the turn that follows, unless a poll
 * has waited in between: nothing was there to be read then, and the turn begins with the question.
 */
export class LoopTurns implements Turns {
  restedAt: number;
  isObserved = false;
  /** The last turn that was asked about and is over. */
  lastMicros = 0;
  private longest = 0;
  private startedAt: number;
  /** The line has run its slice of this turn. */
  private isOver = true;
  /** The instant of the last age() or ended(). */
  private seenAt: number;
  private idleMs: number;
  private loops: number;
  /** False where the runtime does not count turns: an immediate ends the turn there. */
  private readonly isCounted: boolean;

  constructor(
    private readonly now: () => number,
    private readonly soon: (task: () => void) => void,
    private readonly timing: LoopTiming = performance.nodeTiming,
  ) {
    this.startedAt = this.seenAt = this.restedAt = now();
    this.idleMs = timing.idleTime;
    this.isCounted = timing.uvMetricsInfo !== undefined;
    this.loops = this.loopCount();
  }

  age(now: number): number {
    const loops = this.loopCount();
    if (this.isOver || loops !== this.loops) this.begin(now, loops);
    this.seenAt = now;
    const age = now - this.startedAt;
    if (age >= 0 && age < ABSURD_MICROS) return this.took(age);
    this.startedAt = now;
    return 0;
  }

  ended(): void {
    const now = this.now();
    const loops = this.loopCount();
    // The loop polls once a turn, so what was read at its beginning still holds.
    if (!this.isOver && loops === this.loops) this.lastMicros = this.took(now - this.startedAt);
    else this.idleMs = this.timing.idleTime;
    this.loops = loops;
    this.seenAt = now;
    this.isOver = true;
  }

  private begin(now: number, loops: number): void {
    const { idleTime } = this.timing;
    const idleMs = idleTime - this.idleMs;
    const turns = Math.max(1, loops - this.loops);
    const busyUntil = now - idleMs * 1000;
    if (!this.isOver) this.lastMicros = this.took((busyUntil - this.startedAt) / turns);
    const age = this.took((busyUntil - this.seenAt) / turns);
    this.startedAt = idleMs > 0 ? now : now - age;
    this.idleMs = idleTime;
    this.loops = loops;
    this.isOver = false;
    if (idleMs > REST_MS || this.restedAt > now) this.restedAt = now;
    // Without a slice nothing else ends the turn: the next one would be as old as the last run of this one.
    if (!this.isCounted || this.isObserved) this.soon(this.end);
  }

  private readonly end = (): void => this.ended();

  /** The longest turn since the last call. */
  takeLongest(): number {
    const { longest } = this;
    this.longest = 0;
    return longest;
  }

  /** Zero for a clock that has jumped, which says nothing of the turn. */
  private took(micros: number): number {
    if (!(micros >= 0) || micros >= ABSURD_MICROS) return 0;
    if (micros > this.longest) this.longest = micros;
    return micros;
  }

  private loopCount(): number {
    return this.isCounted ? this.timing.uvMetricsInfo!.loopCount : 0;
  }
}
