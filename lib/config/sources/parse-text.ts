import { LineCounter, parseDocument } from 'yaml';
import { RateLimitError } from '../../common/errors.js';
import { isObject } from '../document/json.js';
import { MOST_BYTES } from '../schema/plain-json.js';
import { jsonFault } from './json-fault.js';

export type TextFormat = 'json' | 'yaml';

/** A text that is no JSON or YAML; says where. */
export class ConfigSyntaxError extends RateLimitError {
  readonly code = 'CONFIG_SYNTAX';

  constructor(
    name: string,
    readonly reason: string,
    /** From 1; undefined where the whole text is at fault. */
    readonly line?: number,
    readonly column?: number,
  ) {
    super(`${name}${line === undefined ? '' : `:${line}:${column}`}: ${reason}`);
  }
}

/** JSON for names that end so, YAML for all others: most JSON is YAML as well. */
export const formatOf = (name: string): TextFormat => (/\.json$/i.test(name) ? 'json' : 'yaml');

/** The value of a text. `name` is what the text is called in messages. */
export function parseText(text: string, name: string, format = formatOf(name)): unknown {
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_BYTES) throw tooLarge(name, bytes);
  if (text.trim() === '') throw new ConfigSyntaxError(name, 'is empty');
  if (isBottomless(text))
    throw new ConfigSyntaxError(name, `is nested more than ${MOST_LEVELS} deep`);
  // Some editors put a mark of the byte order in front.
  const bare = text.replace(/^\uFEFF/, '');
  const value = format === 'json' ? parseJson(bare, name) : parseYaml(bare, name);
  return withoutSchema(value);
}

/** A thousand open brackets are more than the stack of a YAML parser holds. */
const MOST_LEVELS = 200;
const LIST_IN_LIST = new RegExp(`(?:[-?:][ \\t]+){${MOST_LEVELS}}`);

/** Brackets in texts are counted as well; nobody has so many of them open. */
function isBottomless(text: string): boolean {
  let level = 0;
  for (let i = 0; i < text.length && level <= MOST_LEVELS; i++) {
    const letter = text[i];
    if (letter === '[' || letter === '{') level++;
    else if ((letter === ']' || letter === '}') && level > 0) level--;
  }
  return level > MOST_LEVELS || LIST_IN_LIST.test(text);
}

export function tooLarge(name: string, bytes: number): ConfigSyntaxError {
  return new ConfigSyntaxError(name, `has ${bytes} bytes; no more than ${MOST_BYTES} are read`);
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw locate(text, name, error as Error);
  }
}

function locate(text: string, name: string, error: Error): ConfigSyntaxError {
  const fault = jsonFault(text);
  if (fault === undefined) return new ConfigSyntaxError(name, `not JSON: ${error.message}`);
  const [line, column] = placeOf(text, fault.offset);
  const rest = text.slice(fault.offset).trim();
  const got = rest === '' ? 'the end' : `'${rest.split(/\s/, 1)[0]!.slice(0, 20)}'`;
  const reason = `not JSON: expected ${fault.expected}, got ${got}`;
  return new ConfigSyntaxError(name, reason, line, column);
}

function placeOf(text: string, offset: number): [line: number, column: number] {
  const before = text.slice(0, offset).split('\n');
  return [before.length, before.at(-1)!.length + 1];
}

function parseYaml(text: string, name: string): unknown {
  const { value, error } = readYaml(text);
  if (error === undefined) return value;
  throw new ConfigSyntaxError(name, `not YAML: ${error.reason}`, ...(error.place ?? []));
}

interface YamlFault {
  readonly reason: string;
  readonly place?: [line: number, column: number];
}

/** Aliases that make much of little are refused by the parser; so are tags, which could be anything. */
function readYaml(text: string): { value?: unknown; error?: YamlFault } {
  const lines = new LineCounter();
  try {
    const options = { lineCounter: lines, prettyErrors: false, merge: true } as const;
    const document = parseDocument(text, { ...options, version: '1.2', stringKeys: true });
    const [fault] = [...document.errors, ...document.warnings];
    if (fault === undefined) return { value: document.toJS({ maxAliasCount: MOST_ALIASES }) };
    const { line, col } = lines.linePos(fault.pos[0]);
    return { error: { reason: fault.message, place: [line, col] } };
  } catch (error) {
    // Too many aliases, or so deep that the parser gave up.
    return { error: { reason: (error as Error).message } };
  }
}

const MOST_ALIASES = 100;

/** Where editors find the schema is said in the file, and is no part of the configuration. */
function withoutSchema(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { $schema: _schema, ...rest } = value;
  return rest;
}
