import { z } from 'zod';
import { type PathSegment } from '../document/path.js';
import { documentSchema } from './document.schema.js';

/** The fields that the schema knows at a place of the document; none where it is not an object. */
export function fieldsAt(path: readonly PathSegment[]): string[] {
  let here: z.ZodType[] = [documentSchema];
  for (const segment of path) here = here.flatMap(forms).flatMap((one) => below(one, segment));
  return [...new Set(here.flatMap(forms).flatMap(namesIn))];
}

/** What a schema can be: the alternatives of a union, without what only wraps them. */
export function forms(schema: z.ZodType): z.ZodType[] {
  if (schema instanceof z.ZodOptional) return forms(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodUnion) {
    return (schema.options as readonly z.ZodType[]).flatMap(forms);
  }
  return [schema];
}

function below(schema: z.ZodType, segment: PathSegment): z.ZodType[] {
  if (schema instanceof z.ZodRecord) return [schema.valueType as z.ZodType];
  if (schema instanceof z.ZodArray) return [schema.element as z.ZodType];
  if (!(schema instanceof z.ZodObject)) return [];
  const field = (schema.shape as Record<string, z.ZodType | undefined>)[segment];
  return field === undefined ? [] : [field];
}

function namesIn(schema: z.ZodType): string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}
