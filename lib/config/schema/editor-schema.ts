import { z } from 'zod';
import { documentSchema } from './document.schema.js';

/** The document's JSON Schema, by which editors check and complete a file. */
export function editorSchema(): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(documentSchema) as Record<string, unknown>;
  return {
    $schema,
    title: 'nestjs-weir',
    description: 'The configuration of nestjs-weir',
    ...rest,
  };
}
