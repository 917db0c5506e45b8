import { type Row } from './rows.js';
import { type Absence, type Bar } from './suite.js';

const INDENT = '  ';
const COLUMN_WIDTH = 12;
const VERDICTS = { ok: 'ok', missed: 'MISSED', undecided: 'undecided' };

/** The figures of one suite as text: a block for each case and metric, its contenders below it. */
export function formatTable(rows: readonly Row[], absences: readonly Absence[]): string {
  const names = [...rows.flatMap((row) => [row.contender, row.metric]), ...absences.map(nameOf)];
  const width = Math.max(0, ...names.map((name) => name.length)) + 2 * INDENT.length;
  const cases = new Set([...rows, ...absences].map((line) => line.case));
  return [...cases]
    .flatMap((caseName) => [
      '',
      caseName,
      ...formatMetrics(
        rows.filter((row) => row.case === caseName),
        width,
      ),
      ...absences
        .filter((absence) => absence.case === caseName)
        .map((absence) => `${label(nameOf(absence), width)}not run: ${absence.reason}`),
    ])
    .join('\n');
}

export function formatBar(bar: Bar): string {
  const found = `found ${formatNumber(bar.found)}`;
  const twins = bar.apart === undefined ? '' : `, twins ${(bar.apart * 100).toFixed(0)} % apart`;
  return `${VERDICTS[bar.verdict].padEnd(9)}  ${bar.promise} (${found}${twins})`;
}

function formatMetrics(rows: readonly Row[], width: number): string[] {
  const contenders = new Set(rows.map((row) => row.contender));
  // A contender alone has one block: a block for each metric would be mostly headings.
  if (contenders.size === 1) {
    return rows.map((row) => label(row.metric, width) + cells([formatNumber(row.median)]));
  }
  return [...new Set(rows.map((row) => row.metric))].flatMap((metric) => [
    `${INDENT}${metric}`.padEnd(width) + cells(['median', 'min', 'max', 'ratio']),
    ...rows.filter((row) => row.metric === metric).map((row) => formatRow(row, width)),
  ]);
}

function formatRow(row: Row, width: number): string {
  const figures = [row.median, row.min, row.max].map(formatNumber);
  const ratio = row.ratio === null ? '' : row.ratio.toFixed(2);
  return label(row.contender, width) + cells([...figures, ratio]);
}

function label(name: string, width: number): string {
  return `${INDENT}${INDENT}${name}`.padEnd(width);
}

function cells(texts: readonly string[]): string {
  return texts
    .map((text) => text.padStart(COLUMN_WIDTH))
    .join('')
    .trimEnd();
}

function nameOf(absence: Absence): string {
  return absence.contender;
}

/** Three digits that count, or all digits before the point. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return 'none';
  const digits = value === 0 ? 1 : Math.floor(Math.log10(Math.abs(value))) + 1;
  const decimals = Number.isInteger(value) ? 0 : Math.min(4, Math.max(0, 3 - digits));
  return value.toLocaleString('en', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
}
