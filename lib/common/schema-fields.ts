import { z } from 'zod';
import { durationMs, parseRate } from './duration.js';
import { A_NAME, NAME } from './validate.js';

/** The building blocks of schemas. The message of each check is the expectation. */

/** Larger figures would lose exactness long before they mean anything. */
const LARGEST_FIGURE = 1e12;

export function whole(least = 1, most = LARGEST_FIGURE) {
  const error = `a whole number from ${least} to ${most}`;
  return z.number({ error }).int({ error }).min(least, { error }).max(most, { error });
}

export function between(least: number, most: number) {
  const error = `a number from ${least} to ${most}`;
  return z.number({ error }).min(least, { error }).max(most, { error });
}

/** A part of a whole, and some of it; `most` above 1 is out of reach. */
export function part(error: string, most = 1) {
  return z.number({ error }).gt(0, { error }).max(most, { error });
}

export const flag = () => z.boolean({ error: 'true or false' });

export const text = (error: string) => z.string({ error }).min(1, { error });

export function choice<const T extends string>(...choices: readonly T[]) {
  return z.enum(choices, { error: `one of ${choices.map((one) => `'${one}'`).join(', ')}` });
}

const A_DURATION =
  "a duration from 1 ms to 365 days: milliseconds or a text like '250ms', '60s', '5m', '1h', '1d'";
const UNITS = 'ms|s|m|h|d|(?:sec|second|min|minute|hour|day)s?';
/** The form of a duration, for editors; the parser checks its range. */
export const DURATION_PATTERN = `^(?:\\d+(?:\\.\\d+)?)?\\s*(?:${UNITS})$`;
export const RATE_PATTERN = `^\\s*\\d+(?:\\.\\d+)?\\s*/\\s*(?:\\d+(?:\\.\\d+)?)?\\s*(?:${UNITS})$`;

export function duration() {
  const error = A_DURATION;
  const isDuration = (value: unknown) => parses(() => durationMs(value, ''));
  const inMs = z.number({ error }).refine(isDuration, { error }).meta({ minimum: 1 });
  const inWords = z
    .string({ error })
    .refine(isDuration, { error })
    .meta({ pattern: DURATION_PATTERN });
  return z.union([inMs, inWords], { error });
}

export function rate() {
  const error = "a number above 0 or a text like '100/s', '100/min', '1000/5m'";
  const isRate = (value: string) =>
    parses(() => parseRate(value, '')) && Number.parseFloat(value) > 0;
  const inWords = z.string({ error }).refine(isRate, { error }).meta({ pattern: RATE_PATTERN });
  return z.union([z.number({ error }).positive({ error }), inWords], { error });
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
export function named<T extends z.ZodType>(of: T, what: string) {
  const name = z.string().regex(NAME, { error: A_NAME });
  return z.record(name, of, { error: `an object of ${what} by name` });
}

/** An object that has these fields and no others. */
export function group<T extends z.ZodRawShape>(shape: T) {
  return z.strictObject(shape, { error: `an object with ${someOf(Object.keys(shape))}` });
}

function someOf(names: readonly string[]): string {
  return names.length > 3 ? `${names.slice(0, 3).join(', ')}…` : names.join(', ');
}

/**
 * A field that may be left out: a layer, a patch and a profile have only the fields that they change.
 * The rules check the fields that a whole document needs. `byDefault` is documentation, and fills in
 * nothing.
 */
export function field<T extends z.ZodType>(of: T, description: string, byDefault?: unknown) {
  const meta = byDefault === undefined ? { description } : { description, default: byDefault };
  return of.optional().meta(meta);
}
