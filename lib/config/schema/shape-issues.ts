import { type ConfigIssue } from '../../common/errors.js';
import { nearest } from '../../common/nearest.js';
import { Field, Group, List, Named, Union, type SchemaFault, type Schema, type Shape, type PathSegment } from '../../common/schema.js';
import { isPlanned, notAvailable } from '../../common/not-available.js';
import { isObject, own, pathText, type DocumentPath } from '../document/json.js';
import { documentSchema } from './document.schema.js';
import { issue } from './issue.js';

/** A fault and its path, by which the sound parts are known. */
export interface LocatedIssue {
  readonly at: DocumentPath;
  readonly issue: ConfigIssue;
}

/** Everything about the document that has the wrong form or name. */
export function shapeIssues(document: unknown): LocatedIssue[] {
  return onePerPlace(
    documentSchema.faults(document).flatMap((fault) => located(fault, [], document)),
  );
}

function located(fault: SchemaFault, base: DocumentPath, document: unknown): LocatedIssue[] {
  const at = [...base, ...fault.at];
  if (fault.kind === 'unknown') {
    const known = fieldsAt(at);
    return fault.names.map((name) => unknownField([...at, name], known, document));
  }
  const value = fault.kind === 'name' ? at.at(-1) : valueAt(document, at);
  const form = fault.kind === 'form' ? closest(fault.forms, value) : undefined;
  if (form !== undefined) return form.flatMap((inner) => located(inner, at, document));
  return [{ at, issue: issue(at, value, fault.expected) }];
}

/** Of several forms, the one that an object or a list was probably meant to have. */
function closest(
  forms: readonly (readonly SchemaFault[])[],
  value: unknown,
): readonly SchemaFault[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const within = forms.filter((faults) => faults.every(isInside));
  const [first, ...others] = within.sort((a, b) => a.length - b.length);
  // Two forms are equally near: the message names all forms.
  return others[0]?.length === first?.length ? undefined : first;
}

const isInside = ({ kind, at }: SchemaFault): boolean => at.length > 0 || kind === 'unknown';

/** The value is not repeated: it may be a secret in a wrong place. */
function unknownField(at: DocumentPath, known: readonly string[], document: unknown): LocatedIssue {
  if (isSection(at) && isPlanned(at.at(-1))) return notThere(at);
  const name = withoutQuota(at, known, document) ?? nearest(String(at.at(-1)), known);
  const hint = name === undefined ? '' : `; did you mean '${name}'?`;
  const expected = name === undefined ? `one of ${known.join(', ')}` : `'${name}'`;
  const list = `${known.slice(0, -1).join(', ')} or ${known.at(-1)}`;
  const { path, ...rest } = issue(at, undefined, expected);
  const message = `${path}: no such field${hint || `; there are ${list.replace(' or ', ' and ')}`}`;
  return { at, issue: { ...rest, path, message } };
}

/** `quota` is a group of the module's options; in a document its parts stand by themselves. */
function withoutQuota(at: DocumentPath, known: readonly string[], document: unknown): string | undefined {
  if (!isSection(at) || at.at(-1) !== 'quota') return undefined;
  const path: PathSegment[] = [];
  let value = valueAt(document, at);
  while (isObject(value) && Object.keys(value).length === 1) {
    const [name] = Object.keys(value);
    path.push(name!);
    value = own(value, name!);
  }
  return known.includes(String(path[0])) ? pathText([...at.slice(0, -1), ...path]) : undefined;
}

function notThere(at: DocumentPath): LocatedIssue {
  const { path, ...rest } = issue(at, undefined, 'nothing');
  return { at, issue: { ...rest, path, message: `${path}: ${notAvailable(at.at(-1))}` } };
}

/** Of the document, or of one of its profiles. */
const isSection = (at: DocumentPath): boolean =>
  at.length === 1 || (at.length === 3 && at[0] === 'profiles');

/** Unlike a path of a request, a path of the document also goes into lists, by number. */
function valueAt(document: unknown, at: DocumentPath): unknown {
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
function fieldsAt(path: DocumentPath): string[] {
  let here: Schema<unknown>[] = [documentSchema];
  for (const segment of path) here = here.flatMap(forms).flatMap((one) => below(one, segment));
  const groups = here.flatMap(forms).filter((one) => one instanceof Group);
  return [...new Set(groups.flatMap(({ shape }) => Object.keys(shape as Shape)))];
}

/** The alternatives of a union; any other schema is its only form. */
function forms(schema: Schema<unknown>): Schema<unknown>[] {
  return schema instanceof Union ? schema.forms.flatMap(forms) : [schema];
}

function below(schema: Schema<unknown>, segment: PathSegment): Schema<unknown>[] {
  if (schema instanceof Named || schema instanceof List) return [schema.of as Schema<unknown>];
  if (!(schema instanceof Group)) return [];
  const field = (schema.shape as Shape)[segment];
  if (field === undefined) return [];
  return [field instanceof Field ? field.of : field];
}
