/** Objects frozen with all that they hold. An object may be frozen and its fields not. */
const immutable = new WeakSet<object>();

/** Freezes a value and all that it holds. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || immutable.has(value)) return value;
  immutable.add(Object.freeze(value));
  for (const one of Object.values(value)) deepFreeze(one);
  return value;
}

/** True for objects that `deepFreeze` has frozen: neither they nor anything in them can change. */
export function isImmutable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && immutable.has(value);
}

/**
 * A function of an object that does its work once for each that cannot change. It must depend on
 * nothing but its arguments, and nobody may change its result.
 */
export function remembered<V extends object, A = undefined, R = unknown>(
  make: (value: V, other: A) => R,
): (value: V, ...other: undefined extends A ? [other?: A] : [other: A]) => R {
  const results = new WeakMap<V, { readonly other: A; readonly result: R }>();
  // A change is rare, so this runs cold: it has to be little rather than fast.
  return ((value: V, other: A): R => {
    const known = results.get(value);
    if (known !== undefined && known.other === other) return known.result;
    const result = make(value, other);
    if (immutable.has(value)) results.set(value, { other, result });
    return result;
  }) as never;
}
