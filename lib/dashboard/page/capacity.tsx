import { useSignal, useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type CapacityReport, type CapacityRow } from '../../observability/report.js';
import { type PageFrame } from '../frame.js';
import { count, percent, plural, shown, time, weekday } from './format.js';
import { ask, histories, loadHistory, view } from './live.js';
import { Card, Empty, MoreButton, Table } from './card.js';
import { useWidth } from './charts.js';

const HEIGHT = 132;
const GROUND = 112;
const HOURS = 168;
const RELOAD_MS = 300_000;

interface Hour {
  readonly atMs: number;
  readonly peak: number | null;
}

/** The busiest minute of each hour, as tokens where there is a quota. */
function useHours(frame: PageFrame): Hour[] {
  const loadedMs = useSignal(0);
  useSignalEffect(() => {
    const now = Date.now();
    if (now - loadedMs.peek() < RELOAD_MS) return;
    loadedMs.value = now;
    void loadHistory('total', 'hours');
  });
  const kept = histories.value.get('total hours');
  void frame;
  if (kept === undefined) return [];
  return kept.peak.map((peak, index) => ({ atMs: kept.startMs + index * kept.stepMs, peak }));
}

function Hours({ hours, capacity }: { hours: readonly Hour[]; capacity: number | undefined }) {
  const { host, width } = useWidth();
  const known = hours.flatMap(({ peak }) => peak ?? []);
  const most = Math.max(capacity ?? 0, ...known, 1) * 1.12;
  const y = (value: number): number => GROUND - (value / most) * (GROUND - 8);
  const step = width.value / HOURS;
  const label = `Busiest minute of each hour of seven days: ${count(Math.max(0, ...known))} a second at most${
    capacity === undefined ? '' : `, of a capacity of ${count(capacity)}`
  }`;
  return (
    <div ref={host} class="chart">
      <svg class="hours" width={width.value} height={HEIGHT} role="img" aria-label={label}>
        <path class="ground" d={`M0 ${GROUND}H${width.value}`} />
        {hours.map(({ peak }, index) => {
          if (peak === null) return null;
          const x = (HOURS - hours.length + index) * step;
          const isHigh = capacity !== undefined && peak > capacity * 0.9;
          return (
            <rect
              key={index}
              x={x.toFixed(1)}
              y={y(peak).toFixed(1)}
              width={Math.max(0.6, step - 0.5).toFixed(2)}
              height={Math.max(0.8, GROUND - y(peak)).toFixed(1)}
              class={isHigh ? 'hour high' : 'hour'}
            />
          );
        })}
        {capacity !== undefined && (
          <>
            <path class="limit-line" d={`M0 ${y(capacity)}H${width.value}`} />
            <text x="0" y={y(capacity) - 5} class="t-small">
              capacity {count(capacity)}/s
            </text>
          </>
        )}
        <text x="0" y="128" class="t-small">
          7 days ago
        </text>
        <text x={width.value} y="128" class="t-small t-end">
          now
        </text>
      </svg>
    </div>
  );
}

function summaryOf(hours: readonly Hour[], capacity: number | undefined): string {
  const known = hours.filter((one): one is Hour & { peak: number } => one.peak !== null);
  if (known.length === 0) return 'No hour is known yet.';
  const busiest = known.reduce((most, one) => (one.peak > most.peak ? one : most));
  const of = capacity === undefined ? '' : `, ${percent(busiest.peak / capacity)} of the capacity`;
  const days = new Set(known.map(({ atMs }) => Math.floor(atMs / 86_400_000))).size;
  const trend = days < 5 ? ` A trend needs 5 days; ${plural(days, 'day')} known.` : '';
  return `The busiest minute was at ${time(busiest.atMs)}: ${count(busiest.peak)}/s${of}.${trend}`;
}

export function CapacityCard({ frame }: { readonly frame: PageFrame }) {
  const hours = useHours(frame);
  const capacity = frame.state.quota?.capacity;
  return (
    <Card
      id="capacity"
      title="Capacity"
      note="busiest minute of each hour, 7 days"
      side={view.value === 'overview' ? <MoreButton to="capacity" text="More" /> : undefined}
    >
      {hours.length === 0 ? (
        <Empty title="No hour is known yet.">
          The first bar comes with the first minutes of traffic.
        </Empty>
      ) : (
        <>
          <Hours hours={hours} capacity={capacity} />
          <p class="note">{summaryOf(hours, capacity)}</p>
        </>
      )}
    </Card>
  );
}

/** Day by day and hour by hour, and who is near a limit. */
export function CapacityView({ frame }: { readonly frame: PageFrame }) {
  const hours = useHours(frame);
  const csv = (): void => download(hours);
  return (
    <>
      <CapacityCard frame={frame} />
      <Card
        id="heat"
        title="Hours of the week"
        note="darker is busier; an empty field is no data"
        side={
          hours.length === 0 ? undefined : (
            <button class="ghost" onClick={csv}>
              Download as CSV
            </button>
          )
        }
      >
        <Heat hours={hours} />
      </Card>
      <Card id="fullness" title="How full it gets" note="7 days; tokens or requests per second">
        <ReportTable />
      </Card>
    </>
  );
}

function ReportTable() {
  const report = useSignal<CapacityReport | undefined>(undefined);
  useEffect(() => {
    ask<CapacityReport>('report').then(
      (answer) => (report.value = answer),
      () => undefined,
    );
  }, []);
  const rows = report.value?.rows ?? [];
  if (rows.length === 0) {
    return <Empty title="Nothing is known yet.">Rows come with the first hour of traffic.</Empty>;
  }
  const or = (value: number | null | undefined, text: (one: number) => string): string =>
    value === null || value === undefined ? '–' : text(value);
  return (
    <Table
      heads={[
        ...['Who', { n: 'Peak/s' }, { n: 'Average/s' }, { n: 'Promised/s' }, { n: 'Of that' }],
        'Trend',
      ]}
    >
      {rows.map((row) => (
        <tr key={`${row.kind} ${row.name}`}>
          <td>{row.kind === 'cluster' ? <b>cluster</b> : `${row.kind} ${shown(row.name)}`}</td>
          <td class="n">{count(row.peak)}</td>
          <td class="n">{count(row.average)}</td>
          <td class="n">{or(row.limit, count)}</td>
          <td class="n">{or(row.ofLimit, percent)}</td>
          <td class="why">{trendText(row)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Infinity does not survive JSON: null is "never". */
function trendText({ forecast, overSinceMs }: CapacityRow): string {
  if (typeof overSinceMs === 'number') return `over it since ${time(overSinceMs)}`;
  switch (forecast.kind) {
    case 'unknown':
      return `${forecast.days} of ${forecast.needed} days known`;
    case 'steady':
      return 'not growing';
    case 'growing': {
      const latest = (forecast.latest as number | null) ?? Infinity;
      const range = Number.isFinite(latest)
        ? `${Math.round(forecast.earliest)} to ${Math.round(latest)}`
        : `${Math.round(forecast.earliest)} or more`;
      return `full in ${plural(Math.round(forecast.daysLeft), 'day')} (${range}), ${count(forecast.perDay)}/s more each day`;
    }
  }
}

function Heat({ hours }: { hours: readonly Hour[] }) {
  const most = Math.max(1, ...hours.map(({ peak }) => peak ?? 0));
  const days = new Map<string, (number | null)[]>();
  for (const { atMs, peak } of hours) {
    const date = new Date(atMs);
    const name = weekday(atMs);
    const row = days.get(name) ?? (Array(24).fill(null) as (number | null)[]);
    row[date.getHours()] = peak;
    days.set(name, row);
  }
  const known = [...days].filter(([, row]) => row.some((one) => one !== null));
  if (known.length === 0) {
    return <Empty title="No hour is known yet.">Come back in an hour.</Empty>;
  }
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      <table class="heat-map">
        <thead>
          <tr>
            <th scope="col">Day</th>
            {Array.from({ length: 24 }, (_, hour) => (
              <th key={hour} scope="col">
                {hour % 3 === 0 ? (
                  String(hour).padStart(2, '0')
                ) : (
                  <span class="hidden">{hour}</span>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {known.map(([day, row]) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              {row.map((peak, hour) => (
                <td key={hour} title={peak === null ? 'no data' : `${count(peak)}/s`}>
                  {peak !== null && <i style={{ opacity: 0.12 + 0.88 * (peak / most) }} />}
                  <span class="hidden">{peak === null ? 'no data' : count(peak)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function download(hours: readonly Hour[]): void {
  const lines = hours.map(({ atMs, peak }) => `${new Date(atMs).toISOString()},${peak ?? ''}`);
  const text = `hour,peak_per_second\n${lines.join('\n')}\n`;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = 'weir-capacity.csv';
  link.click();
  URL.revokeObjectURL(link.href);
}
