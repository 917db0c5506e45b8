export function isPromise(value: unknown): value is PromiseLike<never> {
  const isAble = typeof value === 'object' ? value !== null : typeof value === 'function';
  return isAble && typeof (value as { then?: unknown }).then === 'function';
}

/**
 * True for a promise, of which nobody hears any more: a rejection must not end the process. What cannot
 * even be looked at, or asked, is no value either.
 */
export function isStrayPromise(value: unknown): boolean {
  try {
    if (!isPromise(value)) return false;
    void value.then(undefined, () => undefined);
  } catch {
    // A `then` that throws has told nobody.
  }
  return true;
}

/** What is declared `async` can be known at start never to give a value. */
export function isAsyncFunction(value: unknown): boolean {
  return (
    typeof value === 'function' && /^\[object Async/.test(Object.prototype.toString.call(value))
  );
}
