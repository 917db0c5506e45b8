/** A value that JSON can carry. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: Json;
}

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
