import { ManualClock } from '../support/manual-clock.js';

/** The event loop turns whenever the clock moves, so that every second has its tick. */
export class TurningClock extends ManualClock {
  override soon(task: () => void): () => void {
    task();
    return () => {};
  }
}
