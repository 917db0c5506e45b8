/**
 * The difference of two values of JSON: an array of one holds a new value, an object has the differences of those parts
 * that are not as before, by name or place.
 */
export type Changes = readonly [value: unknown] | { readonly [part: string]: Changes };

type Parts = Record<string, unknown>;

/** Undefined where nothing differs. A list of another length and an object of other names are a new value. */
export function changesBetween(before: unknown, now: unknown): Changes | undefined {
  if (before === now) return undefined;
  const [earlier, later] = [partsOf(before), partsOf(now)];
  if (earlier === undefined || later === undefined) return [now];
  const names = Object.keys(later);
  const isAlike =
    Array.isArray(before) === Array.isArray(now) &&
    names.length === Object.keys(earlier).length &&
    names.every((name) => Object.hasOwn(earlier, name));
  if (!isAlike) return [now];
  let changes: Record<string, Changes> | undefined;
  for (const name of names) {
    const change = changesBetween(earlier[name], later[name]);
    // Without a prototype, any name is a name.
    if (change !== undefined)
      (changes ??= Object.create(null) as Record<string, Changes>)[name] = change;
  }
  return changes;
}

/** The later of the two. The earlier one is left as it is; what has not changed is shared with it. */
export function withChanges(before: unknown, changes: Changes): unknown {
  if (isValue(changes)) return changes[0];
  const later = (Array.isArray(before) ? before.slice() : { ...(before as Parts) }) as Parts;
  for (const [name, change] of Object.entries(changes))
    later[name] = withChanges(later[name], change);
  return later;
}

const partsOf = (value: unknown): Parts | undefined =>
  typeof value === 'object' && value !== null ? (value as Parts) : undefined;

const isValue = (changes: Changes): changes is readonly [unknown] => Array.isArray(changes);
