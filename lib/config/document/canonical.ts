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
  const fields = Object.keys(object).filter((name) => object[name] !== undefined);
  const texts = fields
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(object[name])}`);
  return `{${texts.join(',')}}`;
});

/** The sha256 of a document, in hex: the same for documents that say the same. */
export function hashOf(value: unknown): string {
  return hash('sha256', canonicalJson(value));
}
