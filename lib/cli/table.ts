import { inOneLine } from '../common/quoted.js';

const GAP = '  ';

/** Lines in columns; numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const lines = [head, ...rows.map((row) => row.map(cell))];
  const widths = head.map((_, i) => Math.max(...lines.map((line) => [...(line[i] ?? '')].length)));
  const isNumber = head.map((_, i) => rows.length > 0 && rows.every((row) => isFigure(row[i])));
  return lines
    .map((line) =>
      line
        .map((text, i) => (isNumber[i] ? text.padStart(widths[i]!) : text.padEnd(widths[i]!)))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

const isFigure = (value: unknown): boolean => typeof value === 'number';

function cell(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number') return value.toLocaleString('en-US', { maximumFractionDigits: 1 });
  return typeof value === 'string' ? inOneLine(value) : JSON.stringify(value);
}

const LONGEST_VALUE = 60;

/** A value of a document on one line. */
export function inLine(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}

/** Milliseconds since 1970, as everybody reads them. */
export const isoTime = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');
