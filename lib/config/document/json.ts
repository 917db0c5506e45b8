import { createHash } from 'node:crypto';
import { type PathSegment } from '../../common/schema.js';
import { remembered } from '../../common/immutable.js';

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names that would reach the prototype of every object instead of naming a field. */
const FORBIDDEN: readonly string[] = ['__proto__', 'constructor', 'prototype'];

export const isForbidden = (name: string): boolean => FORBIDDEN.includes(name);

/** The object's own field; undefined for what it only inherits. */
export function own(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** The names of an object's fields, without those that are none. */
export const namesOf = (object: object): string[] =>
  Object.keys(object).filter((name) => !isForbidden(name));

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

/** The sha256 of a document, in hex; equal documents have equal ones. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

/** Where a value stands in a document. */
export type DocumentPath = readonly PathSegment[];

const PLAIN_NAME = /^[A-Za-z_$][\w$-]*$/;

/** `apps.checkout.burst`, `steps[2]`; a name with dots in it stands in brackets. */
export function pathText(segments: DocumentPath): string {
  let text = '';
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (!PLAIN_NAME.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === '' ? segment : `.${segment}`;
  }
  return text;
}
