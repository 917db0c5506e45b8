import { isForbidden, isObject, own, canonicalJson } from './json.js';

/**
 * JSON merge patch, RFC 7396: what the patch names is set, null removes it, objects are joined field
 * by field, and lists are replaced whole. Neither argument is changed.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const base = isObject(target) ? target : {};
  const merged = copyOf(base);
  for (const name of Object.keys(patch)) {
    if (isForbidden(name)) continue;
    if (patch[name] === null) delete merged[name];
    else merged[name] = mergePatch(own(base, name), patch[name]);
  }
  return merged;
}

/**
 * Two patches as one: it does what the first and then the second would do. Unlike `mergePatch` it
 * keeps nulls, as there may be something below to remove.
 *
 * One thing no merge patch can say: that an object replaces another. Where the first removes or
 * replaces an object of which the second then sets fields, the fields are set on whatever is below.
 */
export function mergePatches(first: unknown, second: unknown): unknown {
  if (!isObject(first) || !isObject(second)) return second;
  const merged = copyOf(first);
  for (const name of Object.keys(second)) {
    if (!isForbidden(name)) merged[name] = mergePatches(own(first, name), second[name]);
  }
  return merged;
}

/** The fields of an object, without those that are none. */
function copyOf(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(object)) if (!isForbidden(name)) copy[name] = object[name];
  return copy;
}

/** The merge patch that makes the second of the first. Neither may hold nulls. */
export function patchBetween(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return after;
  const patch: Record<string, unknown> = {};
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) patch[name] = null;
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (old === value) continue;
    const part = patchBetween(old, value);
    const isSame = isObject(old) ? isEmpty(part) : canonicalJson(old) === canonicalJson(value);
    if (!isSame) patch[name] = part;
  }
  return patch;
}

const isEmpty = (part: unknown): boolean => isObject(part) && Object.keys(part).length === 0;
