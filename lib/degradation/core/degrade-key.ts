import { types } from 'node:util';
import { boundedKey, ownText } from '../../common/ids.js';
import { type SchemaVersion } from '../../stores/shared-cache.js';
import { isPlainObject } from './plain-data.js';

export interface DegradeKeyParts {
  /** The service that the answer belongs to, of those that share a store. */
  readonly service?: string;
  /** The route as it is declared, with its verb: `GET /products/:id`. */
  readonly route: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  /** Of requests that have one; the message of calls. */
  readonly body?: unknown;
  readonly schemaVersion?: SchemaVersion;
  /** The caller that the answer belongs to; left out for answers that are everybody's. */
  readonly principal?: string;
  /** Headers that the answer depends on, such as the language. */
  readonly vary?: Readonly<Record<string, unknown>>;
}

/** More than the largest message of gRPC. It also ends what has no end, a value that holds itself. */
const LONGEST = 4 * 1024 * 1024;

/**
 * The key of an answer in the caches. Each part is written with its length, so no value can pass for
 * two parts or for another one; names are sorted, so their order does not matter. Long ones become
 * a digest. Throws for values that cannot be distinguished.
 */
export function degradeKey(parts: DegradeKeyParts): string {
  const { service, route, params, query, body, schemaVersion, principal, vary } = parts;
  const key = boundedKey(
    (service === undefined ? '-' : text(service)) +
      text(route) +
      fields(params) +
      fields(query) +
      (schemaVersion === undefined ? '-' : written(schemaVersion)) +
      (principal === undefined ? '-' : text(principal)) +
      fields(vary) +
      (body === undefined ? '-' : written(body)),
  );
  return ownText(key);
}

const text = (value: string): string => `${value.length}:${value}`;

/** None is like an empty list of them. */
function fields(value: Readonly<Record<string, unknown>> | undefined): string {
  const isEmpty = value === undefined || value === null || Object.keys(value).length === 0;
  return isEmpty ? '-' : written(value);
}

/**
 * A value as a text that no other value has; throws for one that cannot be distinguished, or is too long. Not by
 * recursion: how deep a value is, callers decide.
 */
export function written(value: unknown): string {
  const open: unknown[] = [value];
  let all = '';
  while (open.length > 0) {
    const next = open.pop();
    all += typeof next === 'object' && next !== null ? opened(next, open) : plain(next);
    if (all.length > LONGEST) throw new RangeError('too long for a key');
  }
  return all;
}

function plain(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return text(value);
    case 'number':
      return `n${text(Object.is(value, -0) ? '-0' : String(value))}`;
    case 'boolean':
    case 'bigint':
      return `${typeof value === 'boolean' ? 'b' : 'i'}${text(String(value))}`;
    default:
      return value === null ? 'null' : 'none';
  }
}

/** How many values it has; they are put on top of what is still to be written, the first of them last. */
function opened(value: object, open: unknown[]): string {
  if (Array.isArray(value)) {
    for (let i = value.length - 1; i >= 0; i--) open.push(value[i]);
    return `[${value.length};`;
  }
  if (value instanceof Uint8Array) return `x${text(Buffer.from(value).toString('base64'))}`;
  if (types.isDate(value)) return `d${text(String(value.getTime()))}`;
  if (!isPlainObject(value) && !isLong(value)) throw new TypeError('an instance cannot be a key');
  const names = Object.keys(value).sort();
  for (let i = names.length - 1; i >= 0; i--) {
    open.push((value as Record<string, unknown>)[names[i]!], names[i]);
  }
  return `{${names.length};`;
}

/** A number of 64 bits, as gRPC gives it. */
function isLong(value: object): boolean {
  const { __isLong__: mark } = Object.getPrototypeOf(value) as { __isLong__?: unknown };
  return mark === true;
}
