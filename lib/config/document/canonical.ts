import { hash } from 'node:crypto';
import { remembered } from '../../common/immutable.js';
import { isObject } from './json.js';

/** JSON with the fields of objects in order, so that equal documents are equal texts. */
export function canonicalJson(value: unknown): string {
  if (isObject(value)) return objectText(value);
  if (Array.isArray(value)) return `[${value.map((one) => canonicalJson(one) ?? null).join(',')}]`;
  return JSON.stringify(value);
}

const objectText = remembered((object: Record<string, unknown>): string => {
  let fields = '';
  for (const name of Object.keys(object).sort()) {
    const value = object[name];
    if (value === undefined) continue;
    if (fields !== '') fields += ',';
    fields += `${JSON.stringify(name)}:${canonicalJson(value)}`;
  }
  return `{${fields}}`;
});

/** The sha256 of a document, in hex: the same for documents that say the same. */
export function hashOf(value: unknown): string {
  return hash('sha256', canonicalJson(value));
}
