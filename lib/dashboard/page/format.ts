import { figure as count, limitText, percent } from '../../observability/figures.js';
import { type ShownPolicy, type UnseenNodes } from '../frame.js';

// As the verdict, alerts and the command line tell them.
export { count, percent };

// Formats are made once: making one takes longer than a hundred numbers do.
const ONE_DIGIT = new Intl.NumberFormat('en', {
  ...{ maximumFractionDigits: 1, minimumFractionDigits: 1 },
});
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

export function ms(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value >= 1000 ? `${ONE_DIGIT.format(value / 1000)} s` : `${count(value)} ms`;
}

/** `50/s per key`, `5/min per key on each node`; `1/h` of all callers together. */
export const limitOf = ({ capacity, windowMs, isGlobal, isNodes }: ShownPolicy): string =>
  `${limitText(capacity, windowMs)}${isGlobal ? '' : ' per key'}${isNodes ? ' on each node' : ''}`;

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

export const notSeen = ({ seenMs }: UnseenNodes): string =>
  `not seen${seenMs === null ? '' : ` since ${time(seenMs)}`}`;

/** `Wed 18 Nov`. */
export const weekday = (atMs: number): string => WEEKDAY.format(atMs);

/** `14:02:31`. */
export const clock = (atMs: number): string => CLOCK.format(atMs);

/** Control characters and marks of direction would hide or turn round what stands beside them. */
export const text = (sentence: string): string =>
  sentence.slice(0, LONGEST_TEXT).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '·');
const LONGEST_TEXT = 600;

export const shown = (name: string): string =>
  name.length > LONGEST_NAME ? `${text(name.slice(0, LONGEST_NAME - 1))}…` : text(name);
const LONGEST_NAME = 128;

export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;

/** A clause as a sentence of its own. */
export const sentence = (clause: string): string =>
  `${clause.slice(0, 1).toUpperCase()}${clause.slice(1)}${/[.!?]$/.test(clause) ? '' : '.'}`;
