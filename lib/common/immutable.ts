/** What was frozen with all that it holds. An object may be frozen and what it holds not. */
const immutable = new WeakSet<object>();

/** Freezes a value and all that it holds. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || immutable.has(value)) return value;
  immutable.add(Object.freeze(value));
  for (const one of Object.values(value)) deepFreeze(one);
  return value;
}

/** True for what `deepFreeze` has frozen: nobody can change it, nor anything in it. */
export function isImmutable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && immutable.has(value);
}

/**
 * A function of an object that does its work once for each that cannot change. It must depend on
 * nothing but its arguments, and nobody may change its result.
 */
export function remembered<V extends object, A extends readonly unknown[], R>(
  make: (value: V, ...others: A) => R,
): (value: V, ...others: A) => R {
  const results = new WeakMap<V, { readonly others: A; readonly result: R }>();
  return (value, ...others) => {
    if (!isImmutable(value)) return make(value, ...others);
    const known = results.get(value);
    if (known?.others.every((one, i) => one === others[i])) return known.result;
    const result = make(value, ...others);
    results.set(value, { others, result });
    return result;
  };
}
