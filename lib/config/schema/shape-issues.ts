import { z } from 'zod';
import { type ConfigIssue } from '../../common/errors.js';
import { nearest } from '../../common/nearest.js';
import { isPlanned, notAvailable } from '../../common/not-available.js';
import { isObject, own, type PathSegment } from '../document/json.js';
import { documentSchema } from './document.schema.js';
import { issue } from './issue.js';

type Path = readonly PathSegment[];

/** A fault and its path, by which the sound parts are known. */
export interface LocatedIssue {
  readonly at: Path;
  readonly issue: ConfigIssue;
}

/** Everything about the document that has the wrong form or name. */
export function shapeIssues(document: unknown): LocatedIssue[] {
  const { error } = documentSchema.safeParse(document);
  const found =
    error === undefined ? [] : error.issues.flatMap((one) => located(one, [], document));
  return onePerPlace(found);
}

function located(one: z.core.$ZodIssue, base: Path, document: unknown): LocatedIssue[] {
  const at = [...base, ...(one.path as PathSegment[])];
  const value = valueAt(document, at);
  switch (one.code) {
    case 'unrecognized_keys':
      return one.keys.map((name) => unknownField([...at, name], fieldsAt(at)));
    case 'invalid_key':
      return [{ at, issue: issue(at, at.at(-1), one.issues[0]?.message ?? one.message) }];
    case 'invalid_union': {
      const branch = closest(one.errors, value);
      if (branch === undefined) break;
      return branch.flatMap((inner) => located(inner, at, document));
    }
    default:
  }
  return [{ at, issue: issue(at, value, one.message) }];
}

/** Of several forms, the one that an object or a list was probably meant to have. */
function closest(
  branches: readonly (readonly z.core.$ZodIssue[])[],
  value: unknown,
): readonly z.core.$ZodIssue[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const within = branches.filter((branch) => branch.every(isInside));
  const [first, ...others] = within.sort((a, b) => a.length - b.length);
  // Two forms are equally near: the message names all forms.
  return others[0]?.length === first?.length ? undefined : first;
}

const isInside = ({ code, path }: z.core.$ZodIssue): boolean =>
  path.length > 0 || code === 'unrecognized_keys';

/** The value is not repeated: it may be a secret in a wrong place. */
function unknownField(at: Path, known: readonly string[]): LocatedIssue {
  if (isSection(at) && isPlanned(at.at(-1))) return notThere(at);
  const name = nearest(String(at.at(-1)), known);
  const hint = name === undefined ? '' : `; did you mean '${name}'?`;
  const expected = name === undefined ? `one of ${known.join(', ')}` : `'${name}'`;
  const list = `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`;
  const { path, ...rest } = issue(at, undefined, expected);
  const message = `${path}: no such field${hint || `; there are ${list.replace(' or ', ' and ')}`}`;
  return { at, issue: { ...rest, path, message } };
}

function notThere(at: Path): LocatedIssue {
  const { path, ...rest } = issue(at, undefined, 'nothing');
  return { at, issue: { ...rest, path, message: `${path}: ${notAvailable(at.at(-1))}` } };
}

/** Of the document, or of one of its profiles. */
const isSection = (at: Path): boolean =>
  at.length === 1 || (at.length === 3 && at[0] === 'profiles');

function valueAt(document: unknown, at: Path): unknown {
  let value = document;
  for (const segment of at) {
    if (Array.isArray(value)) value = value[Number(segment)];
    else value = isObject(value) ? own(value, String(segment)) : undefined;
  }
  return value;
}

/** A figure that is both broken and too small is one fault, not two. */
function onePerPlace(found: readonly LocatedIssue[]): LocatedIssue[] {
  const byPath = new Map<string, LocatedIssue>();
  for (const one of found) {
    if (!byPath.has(one.issue.path)) byPath.set(one.issue.path, one);
  }
  return [...byPath.values()];
}

/** The fields that the schema knows at a place of the document; none where it is not an object. */
export function fieldsAt(path: readonly PathSegment[]): string[] {
  let here: z.ZodType[] = [documentSchema];
  for (const segment of path) here = here.flatMap(forms).flatMap((one) => below(one, segment));
  return [...new Set(here.flatMap(forms).flatMap(namesIn))];
}

/** The alternatives of a union, without wrappers; any other schema is its only form. */
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
