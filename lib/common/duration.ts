import { InvalidArgumentError } from './errors.js';

/** Units of time: letters, and words, also in the plural. */
export type TimeUnit = keyof typeof LETTERS_MS | `${keyof typeof WORDS_MS}${'' | 's'}`;

/**
 * Milliseconds, or as people write them: `'250ms'`, `'60s'`, `'5m'`, `'1h'`, `'1d'`. A plain number and
 * a unit; the unit alone means one of it. Units are ms, s, m, h and d, and the words sec, second, min,
 * minute, hour and day, also in the plural. A text that only the run time knows goes through `durationOf`.
 */
export type Duration = number | TimeUnit | `${number}${TimeUnit}`;

/**
 * Tokens per period: a number, of which the period stands beside it, or both at once: `'100/s'`, `'1000/5m'`. A text
 * that only the run time knows goes through `rateOf`.
 */
export type Rate = number | `${number}/${TimeUnit}` | `${number}/${number}${TimeUnit}`;

const LETTERS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WORDS_MS = {
  ...{ sec: 1000, second: 1000, min: 60_000, minute: 60_000 },
  ...{ hour: 3_600_000, day: 86_400_000 },
};

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ...Object.entries(LETTERS_MS),
  ...Object.entries(WORDS_MS),
  ...Object.entries(WORDS_MS).map(([word, ms]): [string, number] => [`${word}s`, ms]),
]);

const NUMBER = /^\d+(?:\.\d+)?$/;
const NUMBER_AND_UNIT = /^(\d+(?:\.\d+)?)?\s*([a-z]+)$/;

/** The duration in milliseconds: at least one, at most a year. */
export function durationMs(value: unknown, field: string): number {
  const ms = typeof value === 'string' ? parse(value.trim().toLowerCase()) : value;
  if (typeof ms !== 'number' || !(ms >= 1) || ms > LONGEST_MS) {
    throw new InvalidArgumentError(
      field,
      value,
      "a duration from 1 ms to 365 days: milliseconds or a text like '250ms', '60s', '5m', '1h', '1d'",
    );
  }
  return ms;
}

const LONGEST_MS = 365 * 86_400_000;

/** The form of a rate, for messages. */
export const A_RATE =
  "a number or a text like '100/s' or '1000/5m', with the unit ms, s, m, h, d or a word: sec, second, min, minute, hour, day";

function parse(text: string): number {
  const match = NUMBER_AND_UNIT.exec(text);
  if (match === null) return NaN;
  const [, count = '1', unit = ''] = match;
  return Number(count) * (UNIT_MS.get(unit) ?? NaN);
}

/** `'100/min'` as a rate and the period it is counted in. */
export function parseRate(text: string, field: string): { rate: number; periodMs: number } {
  const slash = text.indexOf('/');
  const count = text.slice(0, Math.max(0, slash)).trim();
  const rate = NUMBER.test(count) ? Number(count) : NaN;
  const periodMs = parse(
    text
      .slice(slash + 1)
      .trim()
      .toLowerCase(),
  );
  if (Number.isFinite(rate) && periodMs >= 1 && periodMs <= LONGEST_MS) return { rate, periodMs };
  const perSecond = NUMBER.test(text.trim())
    ? ` (${text.trim()} a second is '${text.trim()}/s')`
    : '';
  throw new InvalidArgumentError(field, text, A_RATE + perSecond);
}

/**
 * A rate that only the run time knows, such as that of an environment variable:
 * `rate: rateOf(process.env.API_RATE ?? '100/min')`. Throws if it is none.
 */
export function rateOf(text: string): Rate {
  parseRate(text, 'rate');
  return text as Rate;
}

/** A duration that only the run time knows; throws if it is none. */
export function durationOf(text: string): Duration {
  durationMs(text, 'duration');
  return text as Duration;
}
