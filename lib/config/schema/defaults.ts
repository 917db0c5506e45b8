import { z } from 'zod';

/** The defaults that stand in a schema, group by group. */
export function defaultsOf(schema: z.ZodObject): Record<string, unknown> {
  const defaults: Record<string, unknown> = {};
  const fields: Record<string, z.ZodType> = schema.shape;
  for (const [name, field] of Object.entries(fields)) {
    const inner = field instanceof z.ZodOptional ? field.unwrap() : field;
    const byDefault = field.meta()?.['default'];
    if (byDefault !== undefined) defaults[name] = byDefault;
    else if (inner instanceof z.ZodObject) defaults[name] = defaultsOf(inner);
  }
  return defaults;
}
