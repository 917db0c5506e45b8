import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { type CapacityReport, type CapacityRow } from '../../observability/report.js';
import { type PageFrame } from '../frame.js';
import { count, percent, plural, shown, time, weekday } from './format.js';
import { capacityText } from './judge.js';
import { ask, frame as frameNow, histories, loadHistory, view } from './live.js';
import { Card, Empty, MoreButton, Table } from './card.js';
import { useWidth } from './charts.js';

const HEIGHT = 132;
const GROUND = 112;
const DAY = 24;
const WEEK = 168;
const HOUR_MS = 3_600_000;
/** Of a cluster that is a few minutes old each of them is news. */
const RELOAD_MS = 30_000;

interface Hour {
  readonly atMs: number;
  readonly peak: number | null;
}

const report = signal<CapacityReport | null>(null);
let loadedMs = 0;

/** How much was used; read again while it is looked at. */
function useReport(): CapacityReport | null {
  useEffect(() => {
    const load = (): void => {
      // Without Redis there is only the report of one process.
      const isAway = frameNow.peek()?.state.store?.isUp === false;
      const isEnough = document.hidden || isAway || Date.now() - loadedMs < RELOAD_MS;
      if (report.value !== null && isEnough) return;
      loadedMs = Date.now();
      void loadHistory('total', 'minutes');
      ask<CapacityReport>('report').then(
        (answer) => (report.value = answer),
        () => undefined,
      );
    };
    load();
    const again = setInterval(load, RELOAD_MS);
    return () => clearInterval(again);
  }, []);
  return report.value;
}

/** Whole minutes of the last three hours; undefined before they were asked for. */
const minutesKnown = (): number | undefined =>
  histories.value
    .get('total minutes')
    ?.rate.slice(0, -1)
    .filter((rate) => rate !== null).length;

/** The busiest minute of each hour, as tokens where there is a quota. */
function hoursOf(told: CapacityReport | null): Hour[] {
  if (told === null) return [];
  const { hours, toMs } = told;
  const first = Math.floor(toMs / HOUR_MS) - hours.length + 1;
  return hours.map((peak, index) => ({ atMs: (first + index) * HOUR_MS, peak }));
}

const isKnown = (one: Hour): one is Hour & { peak: number } => one.peak !== null;

function Hours({ hours, capacity }: { hours: readonly Hour[]; capacity: number | undefined }) {
  const { host, width } = useWidth();
  const known = hours.flatMap(({ peak }) => peak ?? []);
  // Of a young cluster a week would be one thin bar.
  const isYoung = !hours.slice(0, -DAY).some(isKnown);
  const span = isYoung ? DAY : WEEK;
  const most = Math.max(capacity ?? 0, ...known, 1) * 1.12;
  const y = (value: number): number => GROUND - (value / most) * (GROUND - 8);
  const step = width.value / span;
  const label = `Busiest minute of each hour of ${isYoung ? 'a day' : 'seven days'}: ${count(Math.max(0, ...known))} a second at most${
    capacity === undefined ? '' : `, of a capacity of ${count(capacity)}`
  }`;
  return (
    <div ref={host} class="chart">
      <svg class="hours" width={width.value} height={HEIGHT} role="img" aria-label={label}>
        <path class="ground" d={`M0 ${GROUND}H${width.value}`} />
        {hours.slice(-span).map(({ peak }, index, all) => {
          if (peak === null) return null;
          const x = (span - all.length + index) * step;
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
          {isYoung ? '24 hours ago' : '7 days ago'}
        </text>
        <text x={width.value} y="128" class="t-small t-end">
          now
        </text>
      </svg>
    </div>
  );
}

/** When the busiest minute was, and what a trend still needs. */
function summaryOf(hours: readonly Hour[], { forecast }: CapacityRow): string {
  const known = hours.filter(isKnown);
  const busiest = known.reduce((most, one) => (one.peak > most.peak ? one : most));
  const trend = forecast.kind === 'unknown' ? ` For a trend, ${knownText(forecast)}.` : '';
  return `The busiest minute was in the hour from ${time(busiest.atMs)}.${trend}`;
}

const knownText = ({ days, needed }: { readonly days: number; readonly needed: number }): string =>
  `${days} of ${needed} whole days are known`;

export function CapacityCard({ frame }: { readonly frame: PageFrame }) {
  const told = useReport();
  const hours = hoursOf(told);
  const capacity = frame.state.quota?.capacity;
  const minutes = minutesKnown();
  return (
    <Card
      id={view.value === 'overview' ? 'capacity' : 'wide'}
      title="Capacity"
      note="busiest minute of each hour"
      side={view.value === 'overview' ? <MoreButton to="capacity" text="More" /> : undefined}
    >
      {!hours.some(isKnown) ? (
        <Empty title="No hour is known yet.">
          The first bar comes with the first minutes of traffic.
        </Empty>
      ) : (
        <>
          <p class="answer">
            {minutes !== undefined && (
              <b>{capacityText(minutes, told!.rows[0]!.peak, capacity, frame.isShort)} </b>
            )}
            {summaryOf(hours, told!.rows[0]!)}
          </p>
          <Hours hours={hours} capacity={capacity} />
        </>
      )}
    </Card>
  );
}

const MOST_ROOMS = 8;

/** Whether limits of apps may be raised, and how far. */
export function Rooms({ frame }: { readonly frame: PageFrame }) {
  const told = useReport();
  const { room } = frame;
  if (room === null) return null;
  const busiest = (app: string): string => {
    const found = told?.rows.find(({ kind, name }) => kind === 'app' && name === app);
    return found && minutesKnown() ? `${count(found.peak)}/s` : '–';
  };
  const rooms = room.apps;
  const rise = ([now, most]: readonly [number, number]): string =>
    most > now ? `${count(now)} → ${count(most)}` : count(now);
  return (
    <div class="rooms">
      <h3 class="sub">May a limit be raised?</h3>
      <p class="note">{room.note}</p>
      {rooms.length > 0 && (
        <Table
          heads={[
            ...['App', { n: 'Busiest minute' }],
            ...[{ n: 'Promise → at most' }, { n: 'Ceiling → at most' }],
          ]}
        >
          {rooms.slice(0, MOST_ROOMS).map(({ app, promise, ceiling }) => (
            <tr key={app}>
              <td>{shown(app)}</td>
              <td class="n">{busiest(app)}</td>
              <td class="n">{rise(promise)}/s</td>
              <td class="n">{rise(ceiling)}/s</td>
            </tr>
          ))}
        </Table>
      )}
      {rooms.length > MOST_ROOMS && <p class="note">And {rooms.length - MOST_ROOMS} more apps.</p>}
    </div>
  );
}

/** Day by day and hour by hour, and who is near a limit. */
export function CapacityView({ frame }: { readonly frame: PageFrame }) {
  const told = useReport();
  const hours = hoursOf(told);
  const csv = (): void => download(hours);
  return (
    <>
      <CapacityCard frame={frame} />
      <Card
        id="week"
        title="Hours of the week"
        note={`darker is busier; ${hours.filter(isKnown).length} of ${WEEK} hours are known`}
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
      {frame.room !== null && (
        <Card id="raise" title="Limits of apps">
          <Rooms frame={frame} />
        </Card>
      )}
      <Card id="fullness" title="How full it gets" note="7 days; tokens or requests per second">
        <ReportTable rows={told?.rows ?? []} />
      </Card>
    </>
  );
}

function ReportTable({ rows }: { rows: readonly CapacityRow[] }) {
  if (rows.length === 0) {
    return <Empty title="Nothing is known yet.">Rows come with the first hour of traffic.</Empty>;
  }
  const or = (value: number | null | undefined, text: (one: number) => string): string =>
    value === null || value === undefined ? '–' : text(value);
  return (
    <Table
      heads={[
        ...[
          'Who',
          { n: 'Busiest minute/s' },
          { n: 'Average/s' },
          { n: 'Promised/s' },
          { n: 'Of that' },
        ],
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
      return knownText(forecast);
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
                  {peak === null ? (
                    <i class="none" />
                  ) : (
                    <i style={{ opacity: 0.25 + 0.75 * (peak / most) }} />
                  )}
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
