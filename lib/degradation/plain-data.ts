/**
 * Whether a value comes back from JSON as what it was to callers: objects, lists, texts, numbers; and
 * what says itself how it is written, such as a date. For values that JSON takes, so without cycles.
 *
 * An instance of a class does not. The app's serialisers go by the class (that is how fields are left
 * out of answers), and a copy without it would show everything.
 */
export function isPlainData(value: unknown): boolean {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (next === null || typeof next !== 'object' || writesItself(next)) continue;
    if (!Array.isArray(next) && !isPlainObject(next)) return false;
    for (const item of Object.values(next)) open.push(item);
  }
  return true;
}

function writesItself(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function' && !Buffer.isBuffer(value);
}

/** Of any realm: each has an Object of its own. */
function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.hasOwn(prototype, 'hasOwnProperty');
}
