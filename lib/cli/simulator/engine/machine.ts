import { type Cancel, type Clock } from '../../../common/clock.js';
import { type Timeline } from './virtual-time.js';

/** In the order in which a turn of the event loop runs them. */
const PHASES = ['timer', 'arrival', 'soon'] as const;
export type LoopPhase = (typeof PHASES)[number];

/**
 * A machine that runs one process. When it dies, its timers and its calls die with it: nothing that
 * the process would still have done happens, and nothing that comes for it is heard. While it is
 * stalled nothing of it runs; what was due meanwhile runs afterwards, timers before what arrived.
 */
export class Machine {
  isAlive = true;
  readonly clock: Clock;
  private stalledUntil = 0;
  private readonly held: Record<LoopPhase, (() => void)[]> = { timer: [], arrival: [], soon: [] };

  constructor(
    readonly nodeId: string,
    protected readonly time: Timeline,
    random: () => number,
  ) {
    this.clock = {
      now: () => time.now(),
      epochMs: (micros) => time.epochMs(micros),
      after: (delayMs, task) => this.cancellable(task, (run) => time.after(delayMs, run), 'timer'),
      every: (intervalMs, task) =>
        this.cancellable(task, (run) => time.every(intervalMs, run), 'timer'),
      soon: (task) => this.cancellable(task, (run) => time.soon(run), 'soon'),
      random,
    };
  }

  /** Runs a task of this process now, or once the stall is over; or never, if it is dead. */
  run(phase: LoopPhase, task: () => void): void {
    if (!this.isAlive) return;
    if (this.time.now() < this.stalledUntil) {
      this.held[phase].push(task);
      return;
    }
    this.time.needsSettling = true;
    task();
  }

  /** The process is busy with something else, or gets no processor. */
  stall(ms: number): void {
    const until = this.time.now() + ms * 1000;
    if (until <= this.stalledUntil) return;
    this.stalledUntil = until;
    this.time.at(until, () => this.resume());
  }

  private resume(): void {
    if (this.time.now() < this.stalledUntil) return;
    for (const phase of PHASES) {
      for (const task of this.held[phase].splice(0)) {
        this.time.at(this.time.now(), () => this.run(phase, task));
      }
    }
  }

  /** A task that was cancelled during a stall does not run after it. */
  private cancellable(
    task: () => void,
    schedule: (run: () => void) => Cancel,
    phase: LoopPhase,
  ): Cancel {
    let isCancelled = false;
    const cancel = schedule(() => {
      this.run(phase, () => {
        if (!isCancelled) task();
      });
    });
    return () => {
      isCancelled = true;
      cancel();
    };
  }
}
