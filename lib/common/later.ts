import { type Cancel, type Clock } from './clock.js';

/** Node fires a longer timer at once. */
const LONGEST_MS = 3_600_000;

/**
 * Runs `task` once, after that time or, if that is long, after an hour. Unlike `after` it does not
 * keep the process alive; so it is for work in the background.
 */
export function later(clock: Pick<Clock, 'every'>, delayMs: number, task: () => void): Cancel {
  const cancel = clock.every(Math.min(Math.max(delayMs, 0), LONGEST_MS), () => {
    cancel();
    task();
  });
  return cancel;
}
