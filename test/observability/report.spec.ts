import { impactOf, type WeighedDocument } from '../../lib/observability/impact.js';
import {
  capacityReport,
  growthOf,
  forecastText,
  reportCsv,
  type CapacityRow,
} from '../../lib/observability/report.js';
import { SeriesTable } from '../../lib/observability/series-table.js';
import { noCounts } from '../../lib/observability/series.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A week, from a Monday on. */
const FROM_MS = Date.UTC(2026, 10, 9);
const TO_MS = FROM_MS + 7 * DAY_MS - 1;

/** Each day at noon the busy hour of a series, whose busiest minute has so many tokens a second. */
function week(peaks: Readonly<Record<string, (day: number) => number>>): SeriesTable {
  const table = new SeriesTable(100);
  for (const [name, peakOf] of Object.entries(peaks)) {
    const [kind, of] = name.split(':') as [string, string?];
    const series = table.ensure(kind, of)!;
    for (let hour = 0; hour < 168; hour++) {
      const noon = hour % 24 === 12;
      const used = peakOf(Math.floor(hour / 24)) * (noon ? 1 : 0.5);
      const at = (FROM_MS + hour * HOUR_MS) * 1000;
      const counts = { ...noCounts(), used: used * 60, count: used * 30 };
      series.add(at + 30e6, 60_000, counts);
      series.add(at + 90e6, HOUR_MS - 60_000, { ...noCounts(), used: used * 30 });
    }
  }
  return table;
}

const limits = {
  capacity: 50_000,
  apps: { search: { guaranteed: 8000, burst: 16_000 }, catalog: { guaranteed: 12_000 } },
};

function reportOf(table: SeriesTable, days = 7, given: typeof limits | object = limits) {
  return capacityReport({
    ...{ cluster: 'shop-prod', series: table.all(), days },
    limits: given as typeof limits,
    ...{ nowMicros: TO_MS * 1000, epochMs: TO_MS },
  });
}

describe('a report on the capacity', () => {
  const table = week({
    total: (day) => 40_000 + day * 1000,
    'app:search': (day) => 7000 + day * 500,
    'app:catalog': () => 9000,
    'policy:login': (day) => 10 + day,
  });
  const { rows, ...report } = reportOf(table);
  const row = (name: string): CapacityRow => rows.find((one) => one.name === name)!;

  it('has the cluster first, then apps and policies, the busiest first', () => {
    expect(rows.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      ...['cluster shop-prod', 'app search', 'app catalog', 'policy login'],
    ]);
    expect(report).toMatchObject({ fromMs: FROM_MS - 1, toMs: TO_MS, days: 7 });
    expect(report.hours).toHaveLength(168);
    expect(report.hours[12]).toBe(40_000);
  });

  it('says how much was used, of what, and when', () => {
    expect(row('shop-prod')).toMatchObject({
      ...{ figure: 'used', peak: 46_000, limit: 50_000, ofLimit: 0.92, knownHours: 168 },
      busiestMs: [6, 5, 4].map((day) => FROM_MS + day * DAY_MS + 12 * HOUR_MS),
    });
    expect(row('shop-prod').average).toBeCloseTo((43_000 * (0.5 * 23 + 1) * 90) / 24 / 3600, 0);
    expect(row('search')).toMatchObject({ peak: 10_000, ofLimit: 1.25, ceiling: 16_000 });
    expect(row('login')).toMatchObject({ figure: 'count', limit: undefined, peak: 8 });
  });

  it('says when it will be full, with what is uncertain, in words', () => {
    expect(rows.map(forecastText)).toEqual([
      ...['4 days (4 to 4)', 'over its guarantee since 12 Nov', 'not growing', 'growing'],
    ]);
    expect(growthOf(row('shop-prod'))).toBeCloseTo(1000 / 46_000, 6);
    const short = week({ total: (day) => (day > 3 ? 100 : NaN) });
    const few = new SeriesTable(1);
    few.total.add((TO_MS - HOUR_MS) * 1000, 60_000, { ...noCounts(), used: 60 });
    expect(forecastText(reportOf(few).rows[0]!)).toBe('0 of 5 days known');
    expect(reportOf(short, 2).hours).toHaveLength(48);
  });

  it('is of requests where there are no quotas, and empty without figures', () => {
    const [all] = reportOf(table, 7, { capacity: undefined, apps: {} }).rows;
    expect(all).toMatchObject({ figure: 'count', limit: undefined, ofLimit: undefined });
    expect(forecastText(all!)).toBe('growing');
    expect(reportOf(new SeriesTable(1)).rows).toEqual([]);
  });

  it('is a table for spreadsheets, in which no name is a formula', () => {
    const csv = reportCsv({
      ...{ ...report, rows: [{ ...row('login'), name: '=cmd|"x",1' }, row('search')] },
    });
    const [head, first, second, ...rest] = csv.split('\r\n');
    expect(head!.split(',')).toHaveLength(16);
    expect(first).toMatch(/^policy,"'=cmd\|""x"",1",requests,8,/);
    expect(second).toMatch(/^app,search,tokens,10000,.*,2026-11-12T12:00:00.000Z,/);
    expect(rest).toEqual(['']);
  });
});

describe('what a change would do', () => {
  const NOW = 3 * HOUR_MS * 1000;

  /** So much is asked for in each minute; the policy beside it. */
  function minutes(
    asked: Readonly<Record<string, (minute: number) => [used: number, denied: number]>>,
  ) {
    const table = new SeriesTable(100);
    for (let minute = 0; minute < 180; minute++) {
      const at = (minute + 0.5) * 60e6;
      table.total.add(at, 60_000, { ...noCounts(), count: 60 });
      for (const [name, of] of Object.entries(asked)) {
        const [kind, own] = name.split(':') as [string, string];
        const [used, denied] = of(minute);
        const counts = { used: used * 60, denied: denied * 60, count: (used + denied) * 60 };
        table.ensure(kind, own)!.add(at, 60_000, { ...noCounts(), ...counts });
      }
    }
    return table;
  }

  const before: WeighedDocument = {
    cluster: { capacity: 1000 },
    apps: {
      search: { guaranteed: 200, burst: 600, priority: 2 },
      checkout: { guaranteed: 400, burst: 800, priority: 0 },
    },
    policies: { login: { rate: '5/m' }, same: { rate: '1/s' } },
  };

  it('is what the shares of the cluster would have left to each app', () => {
    const table = minutes({
      'app:search': (minute) => (minute < 90 ? [300, 0] : [600, 200]),
      'app:checkout': () => [400, 0],
    });
    const after = {
      ...before,
      apps: { ...before.apps, search: { guaranteed: 200, burst: 500, priority: 2 } },
    };
    const { minutes: known, apps, policies } = impactOf(before, after, table, NOW - 1);
    expect([known, policies]).toEqual([180, []]);
    // Half of the time 800 are asked for: 600 pass today, 500 with the lower ceiling.
    expect(apps).toEqual([
      {
        ...{ app: 'search', peakDemand: 800, demand: 550, deniedBefore: 100, deniedAfter: 150 },
        ...{ minutesBefore: 90, minutesAfter: 90 },
      },
      {
        ...{ app: 'checkout', peakDemand: 400, demand: 400, deniedBefore: 0, deniedAfter: 0 },
        ...{ minutesBefore: 0, minutesAfter: 0 },
      },
    ]);
  });

  it('goes by priority where the capacity is lower, and counts an app that is gone', () => {
    const table = minutes({ 'app:search': () => [500, 0], 'app:checkout': () => [700, 0] });
    const lower = { ...before, cluster: { capacity: 900 } };
    const of = (after: WeighedDocument) => {
      const { apps } = impactOf(before, after, table, NOW - 1);
      return Object.fromEntries(apps.map(({ app, deniedAfter }) => [app, deniedAfter]));
    };
    // Beyond 200 and 400 are 300 left, by weights of 2 and 8.
    expect(of(lower)).toEqual({ search: 240, checkout: 60 });
    expect(of({ ...before, apps: { checkout: before.apps!.checkout! } })).toEqual({
      ...{ search: 500, checkout: 0 },
    });
  });

  it('shows of policies how much they are used, as keys are not kept', () => {
    const table = minutes({ 'policy:login': () => [9, 1] });
    const after = {
      ...before,
      policies: { same: { rate: '1/s' }, fresh: {}, login: { rate: '3/m' } },
    };
    const { policies } = impactOf(before, after, table, NOW - 1);
    expect(policies).toEqual([
      { policy: 'login', change: 'altered', peak: 10, rate: 10, denied: 0.1 },
      { policy: 'fresh', change: 'added', peak: 0, rate: 0, denied: 0 },
    ]);
  });
});
