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
  /** The line has run its slice; whatever comes from now on is read in another turn. */
  ended(): void;
}

/** The figures that Node keeps of its loop. */
export interface LoopTiming {
  /** Milliseconds in which the loop had nothing to do, in all. */
  readonly idleTime: number;
  /** Not of every runtime. */
  readonly uvMetricsInfo?: { readonly loopCount: number };
}

/** A poll that waited for so long had nothing to do. */
const REST_MS = 0.2;
/** No turn lasts as long as this: the clock has jumped. */
const ABSURD_MICROS = 3_600_000_000;

/**
 * The turns of this thread's event loop. Nothing is measured but by the first question of a turn, and one
 * immediate ends it: what comes after that immediate is read in another turn.
 */
export class LoopTurns implements Turns {
  restedAt: number;
  /** The last turn that was asked about and is over. */
  lastMicros = 0;
  private longest = 0;
  private isOpen = false;
  private startedAt = 0;
  private endedAt: number;
  private idleMs: number;
  private loops: number;

  constructor(
    private readonly now: () => number,
    private readonly soon: (task: () => void) => void,
    private readonly timing: LoopTiming = performance.nodeTiming,
  ) {
    this.endedAt = this.restedAt = now();
    this.idleMs = timing.idleTime;
    this.loops = this.loopCount();
  }

  age(now: number): number {
    if (!this.isOpen) this.begin(now);
    const age = now - this.startedAt;
    if (age >= 0 && age < ABSURD_MICROS) return age;
    this.startedAt = now;
    return 0;
  }

  ended(): void {
    const now = this.now();
    this.endedAt = now;
    // The loop polls once a turn, so what was read at its beginning still holds.
    if (this.isOpen) {
      this.lastMicros = this.took(now - this.startedAt);
      return;
    }
    this.idleMs = this.timing.idleTime;
    this.loops = this.loopCount();
  }

  private begin(now: number): void {
    const { idleTime } = this.timing;
    const loops = this.loopCount();
    const idleMs = idleTime - this.idleMs;
    const turns = Math.max(1, loops - this.loops);
    this.idleMs = idleTime;
    this.loops = loops;
    const busy = (now - this.endedAt - idleMs * 1000) / turns;
    // A clock that has jumped says nothing of this turn, which counts as new.
    const age = busy > 0 && busy < ABSURD_MICROS ? busy : 0;
    this.startedAt = now - age;
    this.took(age);
    if (idleMs > REST_MS || this.restedAt > now) this.restedAt = now;
    this.isOpen = true;
    this.soon(this.end);
  }

  private readonly end = (): void => {
    this.ended();
    this.isOpen = false;
  };

  /** The longest turn since the last call. */
  takeLongest(): number {
    const { longest } = this;
    this.longest = 0;
    return longest;
  }

  private took(micros: number): number {
    if (!(micros >= 0) || micros >= ABSURD_MICROS) return 0;
    if (micros > this.longest) this.longest = micros;
    return micros;
  }

  private loopCount(): number {
    return this.timing.uvMetricsInfo?.loopCount ?? 0;
  }
}
