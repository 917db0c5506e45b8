import { canonicalJson } from './document/canonical.js';
import { isObject } from './document/json.js';

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
