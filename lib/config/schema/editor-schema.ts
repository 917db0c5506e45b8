import { z } from 'zod';
import { documentSchema } from './document.schema.js';

/** The document's JSON Schema, by which editors check and complete a file. */
export function editorSchema(): Record<string, unknown> {
  const { $schema, properties, ...rest } = z.toJSONSchema(documentSchema);
  return {
    $schema,
    title: 'nestjs-weir',
    description: 'The configuration of nestjs-weir',
    ...rest,
    properties: { $schema: { type: 'string' }, ...properties },
  };
}
