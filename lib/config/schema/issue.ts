import { describe, type ConfigIssue } from '../../common/errors.js';
import { nearest } from '../../common/nearest.js';
import { pathText, type DocumentPath } from '../document/json.js';

/** A name that is not there, and which of those that are was meant by it. */
export function unknownName(
  segments: DocumentPath,
  name: string,
  known: readonly string[],
  expected: string,
): ConfigIssue {
  const told = issue(segments, name, expected);
  const meant = nearest(name, known);
  if (meant === undefined) return told;
  return { ...told, message: `${told.message}; did you mean '${meant}'?` };
}

/** `fault` replaces "expected …, got …" where that would not read well. */
export function issue(
  segments: DocumentPath,
  value: unknown,
  expected: string,
  fault?: string,
): ConfigIssue {
  const path = pathText(segments);
  const where = path === '' ? 'the document' : path;
  const got = value === undefined ? 'nothing' : describe(value);
  const message =
    fault === undefined
      ? `${where}: expected ${expected}, got ${got}`
      : `${where}: ${fault}; expected ${expected}`;
  return { path, value, expected, message };
}
