// Formats are made once: making one takes longer than a hundred numbers do.
const upTo = (most: number, least = 0): Intl.NumberFormat =>
  new Intl.NumberFormat('en', { maximumFractionDigits: most, minimumFractionDigits: least });
const WHOLE = upTo(0);
const TENTHS = upTo(1);
const HUNDREDTHS = upTo(2);
const ONE_DIGIT = upTo(1, 1);
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const HOURS = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short' });
const WEEKDAY = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
});
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** Names as people sort them: node-2 before node-10. */
export const { compare: byName } = new Intl.Collator('en', { numeric: true });

const digits = (value: number): string => (value < 10 ? TENTHS : WHOLE).format(value);

/** `48.6k`, `2,316`, `1.5`: as short as a reader in a hurry needs it. */
export function count(value: number): string {
  if (value >= 999_950) return `${ONE_DIGIT.format(value / 1_000_000)}M`;
  if (value >= 9999.5) return `${ONE_DIGIT.format(value / 1000)}k`;
  return digits(value);
}

export function percent(part: number): string {
  const value = part * 100;
  if (value > 0 && value < 0.01) return '< 0.01 %';
  return `${value < 1 ? HUNDREDTHS.format(value) : digits(value)} %`;
}

export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value >= 1000 ? `${ONE_DIGIT.format(value / 1000)} s` : `${digits(value)} ms`;
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

/** `12 s`, `6 min`, `3 d`. */
export function span(durationMs: number): string {
  for (const [size, name] of UNITS) {
    if (durationMs >= size) return `${Math.floor(durationMs / size)} ${name}`;
  }
  return 'a moment';
}

export const ago = (durationMs: number): string =>
  durationMs < 2000 ? 'just now' : `${span(durationMs)} ago`;

/** `14:02`, by the clock of whoever looks; with the day where that is another. */
export function time(atMs: number, nowMs = Date.now()): string {
  const hours = HOURS.format(atMs);
  return nowMs - atMs < 20 * 3_600_000 ? hours : `${DAY.format(atMs)} ${hours}`;
}

/** `Wed 18 Nov`. */
export const weekday = (atMs: number): string => WEEKDAY.format(atMs);

/** `14:02:31`. */
export const clock = (atMs: number): string => CLOCK.format(atMs);

const WINDOWS: Readonly<Record<number, string>> = {
  1000: 's',
  60_000: 'min',
  3_600_000: 'h',
  86_400_000: 'day',
};

/** `5/min`, `50/s`, `20 in 10 s`. */
export function limit(capacity: number, windowMs: number): string {
  const name = WINDOWS[Math.round(windowMs)];
  if (name !== undefined) return `${count(capacity)}/${name}`;
  if (windowMs < 1000) return `${count((capacity * 1000) / windowMs)}/s`;
  return `${count(capacity)} in ${span(windowMs)}`;
}

/** Control characters and marks of direction would hide or turn round what stands beside them. */
export const text = (sentence: string): string =>
  sentence.slice(0, LONGEST_TEXT).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '·');
const LONGEST_TEXT = 600;

export const shown = (name: string): string =>
  name.length > LONGEST_NAME ? `${text(name.slice(0, LONGEST_NAME - 1))}…` : text(name);
const LONGEST_NAME = 128;

export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;
