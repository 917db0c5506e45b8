/** A value of a message by path, of own properties only: nobody has sent `__proto__` or `toString`. */
export function ownValueAt(from: unknown, path: readonly string[]): unknown {
  let value = from;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
      return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** What a message carries at a place: of a list its elements, and anything else is the first. */
export function valueAtPlace(payload: unknown, place: number): unknown {
  if (Array.isArray(payload)) return payload[place] as unknown;
  return place === 0 ? payload : undefined;
}
