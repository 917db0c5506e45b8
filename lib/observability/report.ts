import { dailyPeaks, forecast, peakOf, useOf, type Forecast, type UseFigure } from './capacity.js';
import { type Slot } from './rings.js';
import { OTHER } from './series-table.js';
import { type Series } from './series.js';

const HOURS_OF_DAY = 24;
const HOUR_MS = 3_600_000;
export const MOST_REPORT_DAYS = 7;

/** The capacity, in tokens per second. */
export interface CapacityLimits {
  /** Undefined where there is no cluster level. */
  readonly capacity: number | undefined;
  readonly apps: Readonly<
    Record<string, { readonly guaranteed: number; readonly burst?: number | undefined }>
  >;
}

/** How much was used in the last days, and when it will not be enough. Rates are per second. */
export interface CapacityReport {
  readonly cluster: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly days: number;
  /** The cluster or all requests first, then apps, then policies; the busiest first. */
  readonly rows: readonly CapacityRow[];
  /** The peak of each hour of the first row, oldest first; null where there is no data. */
  readonly hours: readonly (number | null)[];
}

/** How much of a limit was used, and when it will not be enough. */
export interface CapacityRow {
  readonly kind: 'cluster' | 'app' | 'policy';
  readonly name: string;
  /** Tokens, or requests where there are no tokens. */
  readonly figure: UseFigure;
  /** Rate of the busiest minute. */
  readonly peak: number;
  readonly average: number;
  /** The 95th percentile of the hours' peaks. */
  readonly p95: number;
  /** Number of hours that have data. */
  readonly knownHours: number;
  /** The beginnings of the busiest hours, busiest first, in wall-clock milliseconds. */
  readonly busiestMs: readonly number[];
  /** The capacity, or of an app its guarantee; undefined of a policy, whose limit is for each key. */
  readonly limit: number | undefined;
  /** Of an app: the rate that it never exceeds. */
  readonly ceiling: number | undefined;
  /** The peak as a part of the limit. */
  readonly ofLimit: number | undefined;
  /** Of a whole week, whatever the days of the report; by the capacity, or of an app its ceiling. */
  readonly forecast: Forecast;
  /** Of an app: since when it is over its guarantee each day; undefined if it is not. */
  readonly overSinceMs: number | undefined;
}

export interface ReportInput {
  readonly cluster: string;
  readonly series: readonly Series[];
  readonly limits: CapacityLimits;
  readonly days: number;
  /** The instant on the clock of the rings, and on the wall clock. */
  readonly nowMicros: number;
  readonly epochMs: number;
}

/** Pure: the same hours always give the same report. */
export function capacityReport(input: ReportInput): CapacityReport {
  const { cluster, series, limits, days, nowMicros, epochMs } = input;
  const found = series.flatMap((one) => rowOf(one, input) ?? []);
  const rank = ({ kind }: CapacityRow): number => ['cluster', 'app', 'policy'].indexOf(kind);
  const total = series.find(({ kind }) => kind === 'total');
  const figure = figureOf('total', limits);
  return {
    cluster,
    fromMs: Math.round(epochMs - days * HOURS_OF_DAY * HOUR_MS),
    toMs: Math.round(epochMs),
    days,
    rows: found.sort((one, other) => rank(one) - rank(other) || other.peak - one.peak),
    hours: (total?.hours?.last(nowMicros, days * HOURS_OF_DAY) ?? []).map((slot) =>
      slot === undefined ? null : peakOf(slot, figure),
    ),
  };
}

const figureOf = (kind: Series['kind'], { apps }: CapacityLimits): UseFigure =>
  kind === 'policy' || Object.keys(apps).length === 0 ? 'count' : 'used';

function rowOf(
  { kind, of, hours }: Series,
  { limits, days, nowMicros, epochMs, cluster }: ReportInput,
): CapacityRow | undefined {
  if (hours === undefined || kind === 'resource' || kind === 'store' || of === OTHER) {
    return undefined;
  }
  const figure = figureOf(kind, limits);
  const use = useOf(hours.last(nowMicros, days * HOURS_OF_DAY), figure);
  if (use === undefined) return undefined;
  const app = kind === 'app' ? limits.apps[of!] : undefined;
  const limit = kind === 'total' ? limits.capacity : app?.guaranteed;
  const ceiling = app && (app.burst ?? app.guaranteed);
  const { peak, average, p95 } = use;
  const startMs = (slot: number): number =>
    Math.round(epochMs - nowMicros / 1000 + slot * hours.sizeMs);
  const over = app && overSince(hours.last(nowMicros), figure, app.guaranteed);
  return {
    kind: kind === 'total' ? 'cluster' : kind,
    name: kind === 'total' ? cluster : of!,
    ...{ figure, peak, average, p95, limit, ceiling },
    knownHours: use.hours,
    busiestMs: use.busiest.map(startMs),
    ofLimit: limit === undefined ? undefined : peak / limit,
    forecast: forecast(
      dailyPeaks(hours, nowMicros, figure),
      (kind === 'total' ? limits.capacity : ceiling) ?? Infinity,
    ),
    overSinceMs: over === undefined ? undefined : startMs(over),
  };
}

/** The first hour of the days in a row, up to now, in each of which the peak was above the guarantee. */
function overSince(
  slots: readonly (Slot | undefined)[],
  figure: UseFigure,
  guaranteed: number,
): number | undefined {
  let first: number | undefined;
  for (let end = slots.length; end > 0; end -= HOURS_OF_DAY) {
    const day = slots.slice(Math.max(0, end - HOURS_OF_DAY), end);
    const over = day.find((slot) => slot !== undefined && peakOf(slot, figure) > guaranteed);
    // A day without data says nothing.
    if (over === undefined && day.some((slot) => slot !== undefined)) break;
    first = over?.slot ?? first;
  }
  return first;
}

const CSV_HEAD = [
  ...['kind', 'name', 'figure', 'peak_per_s', 'average_per_s', 'p95_per_s', 'limit_per_s'],
  ...['ceiling_per_s', 'of_limit', 'growth_per_day', 'days_left', 'days_earliest', 'days_latest'],
  ...['over_since', 'busiest_hour', 'known_hours'],
];

/** The report for spreadsheets, with a head. */
export function reportCsv({ rows }: CapacityReport): string {
  const lines = rows.map((row) => {
    const growing = row.forecast.kind === 'growing' ? row.forecast : undefined;
    return [
      ...[row.kind, row.name, row.figure === 'used' ? 'tokens' : 'requests'],
      ...[row.peak, row.average, row.p95, row.limit, row.ceiling, row.ofLimit],
      ...[growing?.perDay, growing?.daysLeft, growing?.earliest, growing?.latest],
      ...[dateOf(row.overSinceMs), dateOf(row.busiestMs[0]), row.knownHours],
    ];
  });
  return `${[CSV_HEAD, ...lines].map((line) => line.map(csvCell).join(',')).join('\r\n')}\r\n`;
}

const dateOf = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString();

/** A text that begins like a formula would be one in a spreadsheet. */
function csvCell(value: string | number | undefined): string {
  if (value === undefined) return '';
  if (typeof value === 'number') return Number.isFinite(value) ? String(Math.round(value * 1000) / 1000) : ''; // oxfmt-ignore
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The forecast of a row in a few words. */
export function forecastText({
  forecast: seen,
  overSinceMs,
  limit,
  ceiling,
  kind,
}: CapacityRow): string {
  if (overSinceMs !== undefined) return `over its guarantee since ${dayOf(overSinceMs)}`;
  if (seen.kind === 'unknown') return `${seen.days} of ${seen.needed} days known`;
  if (seen.kind === 'steady') return 'not growing';
  if (kind === 'policy' || (limit === undefined && ceiling === undefined)) return 'growing';
  if (seen.daysLeft === 0) return 'full';
  if (seen.daysLeft > A_YEAR) return 'not within a year';
  const latest = seen.latest > A_YEAR ? 'never' : days(seen.latest);
  return `${days(seen.daysLeft)} days (${days(seen.earliest)} to ${latest})`;
}

const A_YEAR = 365;
const days = (value: number): string => Math.round(value).toLocaleString('en');

/** The growth of a row, as a part of its peak per day; undefined if it does not grow or is not known. */
export function growthOf({ forecast: seen, peak }: CapacityRow): number | undefined {
  return seen.kind === 'growing' && peak > 0 ? seen.perDay / peak : undefined;
}

/** The day as `12 Nov`, in UTC. */
export function dayOf(ms: number): string {
  return new Date(ms).toLocaleDateString('en-GB', {
    ...{ day: 'numeric', month: 'short', timeZone: 'UTC' },
  });
}
