import { createHash } from 'node:crypto';
import { isObject } from './json.js';

/** JSON with the fields of objects in order, so that equal documents are equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => (isObject(one) ? sorted(one) : one));
}

function sorted(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(object)
      .sort()
      .map((name) => [name, object[name]]),
  );
}

/** The sha256 of a document, in hex: the same for documents that say the same. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

/** Freezes a value and all that it holds. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const one of Object.values(value)) deepFreeze(one);
  return value;
}
