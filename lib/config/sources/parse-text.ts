import { Worker } from 'node:worker_threads';
import { RateLimitError } from '../../common/errors.js';
import { packageFile } from '../../stores/package-file.js';
import { isObject } from '../document/json.js';
import { MOST_BYTES, MOST_KEYS } from '../schema/plain-json.js';

/** How a configuration is written. */
export type TextFormat = 'json' | 'yaml';

/** A text that is no JSON or YAML, and where it is broken. */
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
export async function parseText(
  text: string,
  name: string,
  format = formatOf(name),
): Promise<unknown> {
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_BYTES) throw tooLarge(name, bytes);
  if (text.trim() === '') throw new ConfigSyntaxError(name, 'is empty');
  if (isBottomless(text))
    throw new ConfigSyntaxError(name, `is nested more than ${MOST_LEVELS} deep`);
  // Some editors put a mark of the byte order in front.
  const bare = text.replace(/^\uFEFF/, '');
  const value = format === 'json' ? parseJson(bare, name) : await parseYaml(bare, name);
  return withoutSchema(value);
}

/** A thousand open brackets are more than the stack of a parser holds. */
const MOST_LEVELS = 200;
const LIST_IN_LIST = new RegExp(`(?:[-?:][ \\t]+){${MOST_LEVELS}}`);

/** Brackets in strings are counted as well; no document has so many of them open. */
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
  const [line, column] = positionOf(text, fault.offset);
  const rest = text.slice(fault.offset).trim();
  const got = rest === '' ? 'the end' : `'${rest.split(/\s/, 1)[0]!.slice(0, 20)}'`;
  const reason = `not JSON: expected ${fault.expected}, got ${got}`;
  return new ConfigSyntaxError(name, reason, line, column);
}

function positionOf(text: string, offset: number): [line: number, column: number] {
  const before = text.slice(0, offset).split('\n');
  return [before.length, before.at(-1)!.length + 1];
}

/** The answer of the worker. */
type YamlReading =
  | { readonly value: unknown; readonly fault?: undefined }
  | {
      readonly fault: {
        readonly reason: string;
        readonly line?: number;
        readonly column?: number;
      };
    };

async function parseYaml(text: string, name: string): Promise<unknown> {
  const reading = await readYaml(text);
  if (reading.fault === undefined) return reading.value;
  const { reason, line, column } = reading.fault;
  throw new ConfigSyntaxError(name, `not YAML: ${reason}`, line, column);
}

/** No text of the allowed size that is meant well takes a tenth of these. */
const MOST_READING_MS = 10_000;
const MOST_READING_MB = 512;

/** In a thread of its own, and no longer than is worth waiting for. */
function readYaml(text: string): Promise<YamlReading> {
  return new Promise((resolve) => {
    const worker = new Worker(packageFile('workers/read-yaml.mjs'), {
      workerData: { text, mostKeys: MOST_KEYS, mostDepth: MOST_LEVELS },
      resourceLimits: { maxOldGenerationSizeMb: MOST_READING_MB },
      // Flags of the application, such as a debugger's, are not meant for the worker.
      execArgv: [],
    });
    const give = (reading: YamlReading): void => {
      clearTimeout(timer);
      resolve(reading);
      void worker.terminate();
    };
    const fail = (reason: string): void => give({ fault: { reason } });
    const timer = setTimeout(
      () => fail(`it takes more than ${MOST_READING_MS / 1000} s to read`),
      MOST_READING_MS,
    );
    worker.once('message', give);
    worker.once('error', (error: unknown) => fail((error as Error).message));
    worker.once('exit', () => fail('it could not be read'));
  });
}

/** `$schema` is for editors, and no part of the configuration. */
function withoutSchema(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { $schema: _schema, ...rest } = value;
  return rest;
}

/** Where a text stops being JSON, and what should stand there. */
export interface JsonFault {
  readonly offset: number;
  readonly expected: string;
}

const SPACE = /[ \t\n\r]*/y;
const TEXT = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const SCALAR = new RegExp(
  `${TEXT.source}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?(?![\\w.])|(?:true|false|null)\\b`,
  'uy',
);

/** JSON.parse does not report on every Node where a text is broken; this does nothing else. */
export function jsonFault(text: string): JsonFault | undefined {
  const scan = new Scan(text);
  return scan.value() && scan.end() ? undefined : scan.fault;
}

class Scan {
  fault: JsonFault | undefined;
  private offset = 0;

  constructor(private readonly text: string) {}

  value(): boolean {
    if (this.take('{')) return this.fields();
    if (this.take('[')) return this.items();
    return this.match(SCALAR, 'a value');
  }

  end(): boolean {
    this.match(SPACE, '');
    return this.offset === this.text.length || this.miss('the end');
  }

  private fields(): boolean {
    if (this.take('}')) return true;
    do {
      if (!this.match(TEXT, 'a name in double quotes')) return false;
      if (!this.take(':')) return this.miss("':'");
      if (!this.value()) return false;
    } while (this.take(','));
    return this.take('}') || this.miss("',' or '}'");
  }

  private items(): boolean {
    if (this.take(']')) return true;
    do if (!this.value()) return false;
    while (this.take(','));
    return this.take(']') || this.miss("',' or ']'");
  }

  private take(sign: string): boolean {
    this.skip(SPACE);
    if (this.text[this.offset] !== sign) return false;
    this.offset++;
    return true;
  }

  private match(form: RegExp, expected: string): boolean {
    this.skip(SPACE);
    return this.skip(form) || this.miss(expected);
  }

  private skip(form: RegExp): boolean {
    form.lastIndex = this.offset;
    if (!form.test(this.text)) return false;
    this.offset = form.lastIndex;
    return true;
  }

  private miss(expected: string): false {
    this.fault ??= { offset: this.offset, expected };
    return false;
  }
}
