import { isObject, namesOf, own, canonicalJson, pathText } from './json.js';

/** The differences of a second document. */
export interface ConfigDiff {
  readonly added: readonly { readonly path: string; readonly after: unknown }[];
  readonly removed: readonly { readonly path: string; readonly before: unknown }[];
  readonly changed: readonly {
    readonly path: string;
    readonly before: unknown;
    readonly after: unknown;
  }[];
}

type Open<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : never };

/** Field by field; lists are compared as a whole. An object that came or went whole is one entry. */
export function diff(before: unknown, after: unknown): ConfigDiff {
  const found: Open<ConfigDiff> = { added: [], removed: [], changed: [] };
  compare([], before, after, found);
  return found;
}

function compare(at: readonly string[], before: unknown, after: unknown, found: Open<ConfigDiff>) {
  if (before === after) return;
  if (!isObject(before) || !isObject(after)) {
    if (isSame(before, after)) return;
    const path = pathText(at);
    if (before === undefined) found.added.push({ path, after });
    else if (after === undefined) found.removed.push({ path, before });
    else found.changed.push({ path, before, after });
    return;
  }
  const names = new Set([...namesOf(before), ...namesOf(after)]);
  for (const name of [...names].sort()) {
    compare([...at, name], own(before, name), own(after, name), found);
  }
}

function isSame(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

export const isEmptyDiff = ({ added, removed, changed }: ConfigDiff): boolean =>
  added.length + removed.length + changed.length === 0;
