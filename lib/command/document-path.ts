import { UsageError } from '../simulation/index.js';

/** Names between dots; a name with dots of its own stands in brackets, as messages write it. */
const SEGMENT = /(?:^|\.)([^.[\]]+)|\["((?:[^"\\]|\\.)*)"\]/gy;

export function pathOf(text: string): string[] {
  const names: string[] = [];
  let end = 0;
  for (const match of text.matchAll(SEGMENT)) {
    names.push(match[1] ?? (JSON.parse(`"${match[2]}"`) as string));
    end = match.index + match[0].length;
  }
  if (text !== '' && end === text.length) return names;
  throw new UsageError(`'${text}' is not a path such as policies.api.rate or policies["a.b"].rate`);
}

export function atPath(document: unknown, names: readonly string[]): unknown {
  let value = document;
  for (const name of names) {
    const isHere = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
    value = isHere ? (value as Record<string, unknown>)[name] : undefined;
  }
  return value;
}

/** The patch that sets one field. */
export function patchAt(names: readonly string[], value: unknown): unknown {
  return names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
}
