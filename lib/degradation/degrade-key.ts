import { boundedKey } from '../common/ids.js';
import { type SchemaVersion } from '../stores/index.js';

export interface DegradeKeyParts {
  /** The route as it is declared, with its method: `GET /products/:id`. */
  readonly route: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly schemaVersion?: SchemaVersion;
  /** Whose answer it is; left out for answers that are everybody's. */
  readonly principal?: string;
  /** What else the answer depends on, such as the language. */
  readonly vary?: Readonly<Record<string, unknown>>;
}

/** Deeper values are cut off and marked: a query is not a tree. */
const DEEPEST = 8;

/**
 * The key of an answer in the caches. Each part is written with its length, so no value can pass for
 * two parts or for another one; names are sorted, so their order does not matter. Long ones become
 * a digest.
 */
export function degradeKey(parts: DegradeKeyParts): string {
  const { route, params, query, schemaVersion, principal, vary } = parts;
  const who = principal === undefined ? '-' : text(principal);
  const version = schemaVersion === undefined ? '-' : written(schemaVersion, 0);
  return boundedKey(
    `${text(route)}${fields(params)}${fields(query)}${version}${who}${fields(vary)}`,
  );
}

const text = (value: string): string => `${value.length}:${value}`;

function fields(value: Readonly<Record<string, unknown>> | undefined, depth = 0): string {
  if (value === undefined || value === null) return '-';
  const names = Object.keys(value);
  if (names.length === 0) return '-';
  if (names.length > 1) names.sort();
  let all = `{${names.length}`;
  for (const name of names) all += text(name) + written(value[name], depth + 1);
  return `${all}}`;
}

function written(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return text(value);
    case 'number':
    case 'boolean':
    case 'bigint':
      return `${(typeof value)[0]}${text(String(value))}`;
    case 'object':
      return value === null ? 'null' : writtenObject(value, depth);
    default:
      return 'none';
  }
}

function writtenObject(value: object, depth: number): string {
  if (depth >= DEEPEST) return 'deep';
  if (Array.isArray(value)) {
    let all = `[${value.length}`;
    for (const item of value) all += written(item, depth + 1);
    return `${all}]`;
  }
  return fields(value as Record<string, unknown>, depth);
}
