import { type Cancel, type Clock } from '../common/clock.js';

/** Wakes a node at the earliest instant that anybody asked for. */
export class WakeTimer {
  /** When it will; infinite while nobody has asked. */
  at = Infinity;
  private cancel: Cancel | undefined;
  private isStopped = false;

  constructor(
    private readonly clock: Clock,
    private readonly wake: (now: number) => void,
  ) {}

  arm(at: number): void {
    if (at >= this.at || this.isStopped) return;
    this.cancel?.();
    this.at = at;
    const delayMs = Math.max(1, (at - this.clock.now()) / 1000);
    this.cancel = this.clock.after(delayMs, () => {
      this.at = Infinity;
      this.wake(this.clock.now());
    });
  }

  /** For good. */
  stop(): void {
    this.isStopped = true;
    this.cancel?.();
  }
}
