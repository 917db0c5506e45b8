import { InvalidArgumentError } from './errors.js';
import { isPromise } from './promises.js';
import { oneOf } from './validate.js';

type Listener<E> = (event: E) => void;

/** Listeners by event. One that fails does not keep the others, or the work, from happening. */
export class EventHub<Events extends object> {
  private readonly listeners = new Map<keyof Events, Set<Listener<never>>>();

  constructor(private readonly names: readonly (keyof Events & string)[]) {}

  on<N extends keyof Events & string>(name: N, listener: Listener<Events[N]>): () => void {
    oneOf('event', name, this.names);
    if (typeof listener !== 'function') {
      throw new InvalidArgumentError('listener', listener, 'a function');
    }
    let listeners = this.listeners.get(name);
    if (listeners === undefined) this.listeners.set(name, (listeners = new Set()));
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Whether anybody listens; for events that are work to put together. */
  has(name: keyof Events): boolean {
    return (this.listeners.get(name)?.size ?? 0) > 0;
  }

  emit<N extends keyof Events>(name: N, event: Events[N]): void {
    for (const listener of this.listeners.get(name) ?? []) {
      tell(listener as Listener<Events[N]>, event);
    }
  }
}

/**
 * Calls a function of the application that only listens. Its fault, at once or by a promise that rejects, goes
 * where warnings go; the work goes on.
 */
export function tell<A extends readonly unknown[]>(
  listener: (...about: A) => void,
  ...about: A
): void {
  try {
    const made: unknown = listener(...about);
    if (isPromise(made)) void made.then(undefined, warn);
  } catch (error) {
    warn(error);
  }
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
