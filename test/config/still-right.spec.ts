import { z } from 'zod';
import { isStillRight } from '../../lib/config/schema/still-right.js';

const whole = z.int().min(0).max(3);
const name = z.string().regex(/^[ab]+$/);
const notOne = (value: unknown): boolean => value !== 1;

/** Also what the document has none of yet, such as fields that must be there. */
const SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  'fields that may be left out': z.strictObject({ a: whole.optional(), b: name.optional() }),
  'a field that must be there': z.strictObject({ a: whole, b: name.optional() }),
  'things by name': z.record(name, whole),
  'things of names that are given': z.record(z.enum(['a', 'b']), whole),
  'one of several forms': z.union([whole, z.strictObject({ a: whole }), z.record(name, name)]),
  'a list': z.array(whole).max(2),
  'a check on an object': z
    .strictObject({ a: whole.optional(), b: whole.optional() })
    .refine(({ a, b }) => a !== b),
  'a check on what may be left out': z.strictObject({ a: whole.optional().refine(notOne) }),
  'a check on things by name': z.record(name, whole).refine((all) => Object.keys(all).length < 2),
};

const FIELDS: readonly unknown[] = [undefined, 0, 1, 7, 'a', 'c', null];

/** All that can be made of a few fields, and what is no object. */
function values(): unknown[] {
  const objects = FIELDS.flatMap((a) => FIELDS.flatMap((b) => FIELDS.map((c) => ({ a, b, c }))));
  const others = [...FIELDS.slice(1), [], [0, 1], [0, 1, 2], [7], { toString: 1 }, { a: {} }];
  return JSON.parse(JSON.stringify([...objects, ...others])) as unknown[];
}

describe('the form of a value beside one that is right', () => {
  it.each(Object.keys(SCHEMAS))('is what it is without that: %s', (kind) => {
    const schema = SCHEMAS[kind]!;
    const all = values();
    const right = new Set(all.filter((value) => schema.safeParse(value).success));
    expect(right.size).toBeGreaterThan(0);
    for (const known of right) {
      // Their parts are the same or not, and the objects never are.
      for (const value of all) {
        const found = isStillRight(schema, structuredClone(value), known);
        if (found !== right.has(value)) throw new Error(JSON.stringify({ known, value, found }));
      }
    }
  });
});
