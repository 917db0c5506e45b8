import { safeParse, type z } from 'zod';
import { isObject, own } from '../document/json.js';

type Schema = z.core.$ZodType;

/**
 * Whether a value has the form that a schema asks for, given another one that has it. Where both are
 * the same there is nothing to look at; so it costs as much as there is that differs.
 */
export function isStillRight(schema: Schema, value: unknown, known: unknown): boolean {
  if (value === known) return true;
  const { def } = schema._zod as { def: AnyDef };
  // A check on the whole may find fault with any part of it.
  if (def.checks !== undefined && def.checks.length > 0) return passes(schema, value);
  if (def.type === 'optional') return isStillRight(def.innerType!, value, known);
  if (isObject(value) && isObject(known)) {
    if (def.type === 'object') return areFieldsRight(def.shape!, value, known);
    if (def.type === 'record' && hasFreeNames(def)) return areEntriesRight(def, value, known);
  }
  return passes(schema, value);
}

/** What is looked at of a schema's definition, whatever kind it is. */
interface AnyDef {
  readonly type: string;
  readonly checks?: readonly unknown[];
  readonly innerType?: Schema;
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly keyType?: Schema;
  readonly valueType?: Schema;
}

type Fields = Readonly<Record<string, unknown>>;

function areFieldsRight(shape: NonNullable<AnyDef['shape']>, value: Fields, known: Fields) {
  for (const name of Object.keys(value)) {
    const isField = Object.hasOwn(shape, name);
    if (!isField || !isStillRight(shape[name]!, value[name], own(known, name))) return false;
  }
  for (const name of Object.keys(known)) {
    if (!Object.hasOwn(value, name) && !passes(shape[name]!, undefined)) return false;
  }
  return true;
}

/** Where the names are given, each of them has to be there. */
const hasFreeNames = ({ keyType }: AnyDef): boolean =>
  (keyType!._zod as { def: AnyDef }).def.type === 'string';

function areEntriesRight({ keyType, valueType }: AnyDef, value: Fields, known: Fields): boolean {
  for (const name of Object.keys(value)) {
    const isNew = !Object.hasOwn(known, name);
    if (isNew && !passes(keyType!, name)) return false;
    if (!isStillRight(valueType!, value[name], isNew ? undefined : known[name])) return false;
  }
  return true;
}

function passes(schema: Schema, value: unknown): boolean {
  return safeParse(schema, value).success;
}
