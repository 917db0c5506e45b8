import { type Clock } from '../../common/clock.js';

/** That nothing came in time, or not at all. */
export const NOTHING = Symbol('nothing');

/**
 * What a promise brings within its time, else NOTHING; never rejects. `failed` hears why it brought
 * nothing, unless that was too late for anybody to care.
 */
export function inBudget<T>(
  promise: Promise<T>,
  budgetMs: number,
  clock: Pick<Clock, 'after'>,
  failed: (why: 'threw' | 'hung') => void = () => {},
): Promise<T | typeof NOTHING> {
  return new Promise((resolve) => {
    let isOpen = true;
    const end = (value: T | typeof NOTHING, why?: 'threw' | 'hung'): void => {
      if (!isOpen) return;
      isOpen = false;
      cancel();
      if (why !== undefined) failed(why);
      resolve(value);
    };
    const cancel = clock.after(Math.max(0, budgetMs), () => end(NOTHING, 'hung'));
    promise.then(
      (value) => end(value),
      () => end(NOTHING, 'threw'),
    );
  });
}
