import { isObject, own, canonicalJson } from './json.js';

/**
 * A value equal to the given one, made of the parts of a known value wherever these are equal. So a
 * part that has not changed is the same object, by which its users recognise it. Neither argument is
 * changed.
 */
export function shared<T>(known: unknown, value: T): T {
  if (known === value) return value;
  if (isObject(value) && isObject(known)) return sharedFields(known, value) as T;
  const isSameList = Array.isArray(value) && canonicalJson(known) === canonicalJson(value);
  return isSameList ? (known as T) : value;
}

function sharedFields(known: Record<string, unknown>, value: Record<string, unknown>): object {
  const names = Object.keys(value);
  let isSame = names.length === Object.keys(known).length;
  let copy: Record<string, unknown> | undefined;
  for (const name of names) {
    const before = own(known, name);
    const part = shared(before, value[name]);
    if (part !== before || before === undefined) isSame = false;
    if (part !== value[name]) (copy ??= { ...value })[name] = part;
  }
  return isSame ? known : (copy ?? value);
}
