import { types } from 'node:util';

/**
 * Whether a value comes back from JSON as what it was to callers: objects, lists, texts, numbers, and
 * the few that are known to be written as one text, dates and addresses. For values that JSON takes, so
 * without cycles.
 *
 * An instance of a class does not, whatever its JSON is. The app's serialisers go by the
 * class (that is how fields are left out of answers), and a copy without it would show everything. The
 * same goes for marks that JSON does not write.
 */
export function isPlainData(value: unknown): boolean {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (next === null || typeof next !== 'object' || isKnownText(next)) continue;
    if (!(Array.isArray(next) ? isPlainList(next) : isPlainObject(next))) return false;
    if (writesItself(next) || Object.getOwnPropertySymbols(next).length > 0) return false;
    for (const item of Object.values(next)) open.push(item);
  }
  return true;
}

/**
 * Of any realm: each has an Object of its own. A class's prototype has another one above it. Fastify's
 * queries have an empty one, which means nothing.
 */
export function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null || isRoot(prototype)) return true;
  return Object.getPrototypeOf(prototype) === null && Reflect.ownKeys(prototype).length === 0;
}

function isPlainList(value: object): boolean {
  return isBuiltIn(value, 'copyWithin');
}

/** Dates and addresses, none that a class has made its own. */
function isKnownText(value: object): boolean {
  if (Object.hasOwn(value, 'toJSON')) return false;
  if (types.isDate(value)) return isBuiltIn(value, 'toISOString');
  return value instanceof URL && Object.getPrototypeOf(value) === URL.prototype;
}

function writesItself(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function';
}

/** Made by the language itself, whose prototypes stand directly on the root. */
function isBuiltIn(value: object, method: string): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype === null || !Object.hasOwn(prototype, method)) return false;
  const above = Object.getPrototypeOf(prototype) as object | null;
  return above !== null && isRoot(above);
}

function isRoot(prototype: object): boolean {
  return (
    Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'propertyIsEnumerable')
  );
}
