import { durationMs, parseRate, type Duration, type Rate } from './duration.js';
import * as schema from './schema.js';
import { type Schema, type Shape, type Union } from './schema.js';
import { A_NAME, NAME } from './validate.js';

/** The building blocks of schemas. Each says what it expects. */

/** Larger figures would lose exactness long before they mean anything. */
const LARGEST_FIGURE = 1e12;

export function whole(least = 1, most = LARGEST_FIGURE) {
  const bounds = { type: 'integer', minimum: least, maximum: most } as const;
  return schema.number(`a whole number from ${least} to ${most}`, bounds);
}

export function between(least: number, most: number) {
  return schema.number(`a number from ${least} to ${most}`, { minimum: least, maximum: most });
}

/** A fraction above 0. A `most` above 1 lets a threshold be set that is never reached. */
export function part(expected: string, most = 1) {
  return schema.number(expected, { exclusiveMinimum: 0, maximum: most });
}

export const flag = () => schema.flag('true or false');

export const text = (expected: string) =>
  schema.text(expected, { minLength: 1 }, (value) => value !== '');

/** A text that names something, for keys of Redis among others. */
export const name = (expected: string) =>
  schema.text(expected, { pattern: NAME.source }, (value) => NAME.test(value));

export function choice<const T extends string>(...choices: readonly T[]) {
  return schema.choice(`one of ${choices.map((one) => `'${one}'`).join(', ')}`, choices);
}

const A_DURATION =
  "a duration from 1 ms to 365 days: milliseconds or a text like '250ms', '60s', '5m', '1h', '1d'";
const UNITS = 'ms|s|m|h|d|(?:sec|second|min|minute|hour|day)s?';
/** The form of a duration, for editors; the parser checks its range. */
export const DURATION_PATTERN = `^(?:\\d+(?:\\.\\d+)?)?\\s*(?:${UNITS})$`;
export const RATE_PATTERN = `^\\s*\\d+(?:\\.\\d+)?\\s*/\\s*(?:\\d+(?:\\.\\d+)?)?\\s*(?:${UNITS})$`;

export function duration(): Union<Duration> {
  const isDuration = (value: unknown) => parses(() => durationMs(value, ''));
  const inMs = schema.number(A_DURATION, { minimum: 1 }, isDuration);
  const text = schema.text(A_DURATION, { pattern: DURATION_PATTERN }, isDuration);
  return schema.union(A_DURATION, inMs, text as Schema<Duration>);
}

export function rate(): Union<Rate> {
  const expected = "a number above 0 or a text like '100/s', '100/min', '1000/5m'";
  const isRate = (value: string) =>
    parses(() => parseRate(value, '')) && Number.parseFloat(value) > 0;
  const text = schema.text(expected, { pattern: RATE_PATTERN }, isRate);
  const number = schema.number(expected, { exclusiveMinimum: 0 });
  return schema.union(expected, number, text as Schema<Rate>);
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

/** Things by name. */
export function named<T>(of: Schema<T>, what: string) {
  const names = { form: NAME, expected: A_NAME };
  return new schema.Named(`an object of ${what} by name`, of, names);
}

/** An object that has these fields and no others. */
export function group<S extends Shape>(shape: S) {
  return new schema.Group(`an object with ${someOf(Object.keys(shape))}`, shape);
}

function someOf(names: readonly string[]): string {
  return names.length > 3 ? `${names.slice(0, 3).join(', ')}…` : names.join(', ');
}

/**
 * A field that may be left out: a layer, a patch and a profile have only the fields that they change.
 * The rules check the fields that a whole document needs. `byDefault` is documentation, and fills in
 * nothing.
 */
export function field<T>(of: Schema<T>, description: string, byDefault?: unknown) {
  const meta = byDefault === undefined ? { description } : { description, default: byDefault };
  return new schema.Field(of, meta);
}
