import { z } from 'zod';

/** The defaults that stand in a schema, group by group. */
export function defaultsOf(schema: z.ZodObject): Record<string, unknown> {
  const defaults: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(schema.shape as Record<string, z.ZodType>)) {
    const inner = field instanceof z.ZodOptional ? field.unwrap() : field;
    const byDefault = field.meta()?.['default'];
    if (byDefault !== undefined) defaults[name] = byDefault;
    else if (inner instanceof z.ZodObject) defaults[name] = defaultsOf(inner);
  }
  return defaults;
}
