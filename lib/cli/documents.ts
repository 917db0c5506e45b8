import { nearest } from '../common/nearest.js';
import { pathText } from '../config/document/json.js';
import { UsageError } from './command.js';
import { readText } from '../config/sources/file-source.js';
import { parseText, tooLarge } from '../config/sources/parse-text.js';
import { MOST_BYTES } from '../config/schema/plain-json.js';

const INPUT = 'the input';

/** The content of a file; `-` is the standard input. */
export async function readDocument(file: string): Promise<unknown> {
  if (file === '-') return parseText(await readInput(), INPUT);
  return parseText(await readText(file, file), file);
}

/** Bounded: a pipe need not end. */
async function readInput(): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw tooLarge(INPUT, bytes);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Names between dots; a name with dots of its own stands in brackets, as messages write it. */
const SEGMENT = /(?:^|\.)([^.[\]]+)|\["((?:[^"\\]|\\.)*)"\]/gy;

export function pathOf(text: string): string[] {
  const names: string[] = [];
  let end = 0;
  for (const match of text.matchAll(SEGMENT)) {
    const name = match[1] ?? unescaped(match[2]!);
    if (name === undefined) break;
    names.push(name);
    end = match.index + match[0].length;
  }
  if (text !== '' && end === text.length) return names;
  throw new UsageError(`'${text}' is not a path such as policies.api.rate or policies["a.b"].rate`);
}

/** Undefined where an escape means nothing. */
function unescaped(text: string): string | undefined {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return undefined;
  }
}

/** Lists are whole values on the command line: no path goes into one. */
export function atPath(document: unknown, names: readonly string[]): unknown {
  let value = document;
  for (const name of names) {
    value = isFields(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

const MOST_NAMES = 8;

/** The end of a message about a path that is not there: a near one, or the names that exist. */
export function insteadOf(document: object, names: readonly string[]): string {
  if (Object.keys(document).length === 0) return ': the configuration is empty';
  const meant = nearest(pathText(names), [...pathsIn(document)]);
  if (meant !== undefined) return `; did you mean ${meant}?`;
  const depth = names.findIndex((_, i) => !isFields(atPath(document, names.slice(0, i + 1))));
  const above = names.slice(0, depth);
  const known = Object.keys(atPath(document, above) as object);
  const some = known.slice(0, MOST_NAMES).join(', ') + (known.length > MOST_NAMES ? '…' : '');
  return `; ${pathText(above) || 'the configuration'} has ${some}`;
}

function* pathsIn(value: unknown, above: readonly string[] = []): Iterable<string> {
  if (above.length > 0) yield pathText(above);
  if (!isFields(value)) return;
  for (const name of Object.keys(value)) yield* pathsIn(value[name], [...above, name]);
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** The patch that sets one field. */
export function patchAt(names: readonly string[], value: unknown): unknown {
  return names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
}
