export function isPromise(value: unknown): value is PromiseLike<never> {
  const isAble = typeof value === 'object' ? value !== null : typeof value === 'function';
  return isAble && typeof (value as { then?: unknown }).then === 'function';
}

/**
 * True for a promise, whose rejection is then silenced: it must not end the process. A value that throws
 * when it is looked at is none either.
 */
export function isStrayPromise(value: unknown): boolean {
  try {
    if (!isPromise(value)) return false;
    void value.then(undefined, () => undefined);
  } catch {
    // A `then` that throws is no promise.
  }
  return true;
}

/** A function declared `async` can be known at start never to give a value. */
export function isAsyncFunction(value: unknown): boolean {
  return (
    typeof value === 'function' && /^\[object Async/.test(Object.prototype.toString.call(value))
  );
}
