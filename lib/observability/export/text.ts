import { LogLinear } from '../../common/histogram.js';
import { BUCKET_MICROS, type Family, type Sample } from '../families.js';

/** The media type of the text. */
export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const LONGEST_VALUE = 128;
const MICROS_PER_SECOND = 1_000_000;

/** Metrics in the text format of Prometheus, version 0.0.4. */
export function textOf(families: readonly Family[]): string {
  return families.map(familyText).join('\n');
}

function familyText(family: Family): string {
  const { name, help, kind } = family;
  const lines = [`# HELP ${name} ${escapedHelp(help)}`, `# TYPE ${name} ${kind}`];
  for (const sample of family.samples) addLines(family, sample, lines);
  return `${lines.join('\n')}\n`;
}

function addLines({ name, labels }: Family, sample: Sample, lines: string[]): void {
  const pairs = labels.map((label, index) => `${label}="${escapedValue(sample.labels[index]!)}"`);
  if (!(sample.value instanceof LogLinear)) {
    lines.push(`${name}${inBraces(pairs)} ${numberText(sample.value)}`);
    return;
  }
  for (const { le, count } of bucketsOf(sample.value)) {
    lines.push(`${name}_bucket${inBraces([...pairs, `le="${le}"`])} ${count}`);
  }
  lines.push(`${name}_sum${inBraces(pairs)} ${sample.value.sumMicros / MICROS_PER_SECOND}`);
  lines.push(`${name}_count${inBraces(pairs)} ${sample.value.count}`);
}

/** The cumulative buckets of a histogram, `le` in seconds. */
export function bucketsOf(times: LogLinear): { readonly le: string; readonly count: number }[] {
  const buckets = BUCKET_MICROS.map((micros) => ({
    le: String(micros / MICROS_PER_SECOND),
    count: times.countAtMost(micros),
  }));
  return [...buckets, { le: '+Inf', count: times.count }];
}

const inBraces = (pairs: readonly string[]): string =>
  pairs.length === 0 ? '' : `{${pairs.join(',')}}`;

function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}

const escapedHelp = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');

/** Names come from code and configuration, and may hold anything. */
export function escapedValue(text: string): string {
  return shownName(text).replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
}

/** A name without characters that would move a terminal's cursor, and not longer than anybody reads. */
export function shownName(text: string): string {
  return text.slice(0, LONGEST_VALUE).replace(/[\p{Cc}\p{Cf}]/gu, '·');
}
