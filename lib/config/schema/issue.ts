import { describe, type ConfigIssue } from '../../common/errors.js';
import { pathText, type PathSegment } from '../document/path.js';

/** `fault` replaces "expected …, got …" where that would not read well. */
export function issue(
  segments: readonly PathSegment[],
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
