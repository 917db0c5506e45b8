import { type Contender } from '../contender.js';

/** So many calls at a time, and as many that may wait: never reached, but looked at by each call. */
export const CALLS = 200;
export const DEADLINE_MS = 200;
export const WINDOW_MS = 10_000;
export const MINIMUM_CALLS = 20;
export const OPEN_MS = 5000;

/** Work that takes no time, so that all that is measured is what stands around it. */
export const work = (key: string): Promise<string> => Promise.resolve(key);

/** A way to call the work. */
export function protectedBy(
  decide: (key: string) => Promise<unknown>,
  close: () => void = () => {},
): Contender<unknown> {
  return { answers: 'later', decide, allowed: (result) => typeof result === 'string', close };
}
