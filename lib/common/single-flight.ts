import { type Clock } from './clock.js';

interface Flight<T> {
  readonly result: Promise<T>;
  /** Instant of the clock, in microseconds, until which the call is worth waiting for. */
  readonly until: number;
}

/** Calls that are under way, one for each key: requests of the same key at the same time share its result. */
export class SingleFlight<T> {
  private readonly flights = new Map<string, Flight<T>>();

  get size(): number {
    return this.flights.size;
  }

  /** The call of the key, if it is under way and, by the end of its time, worth waiting for. */
  join(key: string, isWorthIt: (until: number) => boolean = () => true): Promise<T> | undefined {
    const flight = this.flights.get(key);
    return flight !== undefined && isWorthIt(flight.until) ? flight.result : undefined;
  }

  /** From now on others may join the call, until it has ended or another one takes its place. */
  begin(key: string, call: Promise<T>, until = Infinity): Promise<T> {
    const result = call.finally(() => {
      if (this.flights.get(key)?.result === result) this.flights.delete(key);
    });
    this.flights.set(key, { result, until });
    return result;
  }
}

/** That nothing came in time, or not at all. */
export const NOTHING = Symbol('nothing');

/**
 * The value of a promise if it comes within the budget, else NOTHING; never rejects. `failed` is called
 * with the cause, unless it comes after the budget.
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
