import { isObject, namesOf, own } from './json.js';

/**
 * JSON merge patch, RFC 7396: what the patch names is set, null removes it, objects are joined field
 * by field, and lists are replaced whole. Neither argument is changed.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const base = isObject(target) ? target : {};
  const merged: Record<string, unknown> = {};
  for (const name of namesOf(base)) merged[name] = base[name];
  for (const name of namesOf(patch)) {
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
  const merged: Record<string, unknown> = {};
  for (const name of namesOf(first)) merged[name] = first[name];
  for (const name of namesOf(second)) merged[name] = mergePatches(own(first, name), second[name]);
  return merged;
}
