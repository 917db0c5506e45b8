import { useSignal, useSignalEffect } from '@preact/signals';
import { type SeriesHistory } from '../../observability/series-history.js';
import { type Horizon } from '../../observability/series.js';
import { type Mark, type SeriesState } from '../../observability/state.js';
import { type PageFrame } from '../frame.js';
import { Empty, Table } from './card.js';
import { Chart, type ChartData } from './charts.js';
import { clock, count, shown, time } from './format.js';
import { frame as frameNow, histories, horizon, HORIZON_NAMES, loadHistory } from './live.js';

export const seriesOf = ({ state }: PageFrame, name: string): SeriesState | undefined =>
  state.series.find((one) => one.name === name);

/** Answers of all reduced levels, per second. */
export const degradedOf = (series: SeriesState | undefined): number =>
  (series?.degraded ?? []).reduce((sum, one) => sum + one, 0);

const SECONDS_KEPT = 120;

interface RatePoint {
  readonly at: number;
  /** Of all nodes, or of one: these are not drawn as one line. */
  readonly scope: PageFrame['scope'];
  readonly allowed: number | null;
  readonly degraded: number | null;
  readonly denied: number | null;
  readonly storeP99: number | null;
}

/** The last two minutes, from each frame. */
export const recent: RatePoint[] = [];
/** Frames that are further apart have a gap between them: the page was paused, hidden or without a stream. */
const GAP_SECONDS = 5;

export function keep(frame: PageFrame): void {
  const total = seriesOf(frame, 'total');
  const degraded = degradedOf(total);
  const [rate, denied] = [total?.rate ?? 0, total?.denied ?? 0];
  recent.push({
    ...{ at: frame.nowMs / 1000, scope: frame.scope },
    allowed: Math.max(0, rate - denied - degraded),
    ...{ degraded, denied },
    storeP99: seriesOf(frame, 'store')?.p99Ms ?? null,
  });
  if (recent.length > SECONDS_KEPT + 5) recent.shift();
}

/** As far as the page has seen; nobody who calls now and then is told so each time. */
export const isQuiet = (): boolean =>
  recent.every(({ allowed, degraded, denied }) => !allowed && !degraded && !denied);

const SPANS: Readonly<Record<Horizon, number>> = {
  seconds: 120,
  minutes: 180 * 60,
  hours: 168 * 3600,
};

/** The kept history, and the points of all requests that were seen since behind it. */
function chartData(
  kept: SeriesHistory | null | undefined,
  points: readonly RatePoint[],
): ChartData {
  const columns: Columns = { at: [], allowed: [], degraded: [], denied: [] };
  const firstAt = points[0]?.at ?? Infinity;
  kept?.rate.forEach((rate, index) => {
    const at = (kept.startMs + (index + 0.5) * kept.stepMs) / 1000;
    if (at >= firstAt) return;
    const [denied, degraded] = [kept.denied[index] ?? null, kept.degraded[index] ?? null];
    const allowed = rate === null ? null : Math.max(0, rate - (denied ?? 0) - (degraded ?? 0));
    push(columns, at, allowed, degraded, denied);
  });
  leaveNoSeam(columns, firstAt);
  let last = points[0];
  for (const point of points) {
    const { at, allowed, degraded, denied } = point;
    if (at - last!.at > GAP_SECONDS || point.scope !== last!.scope) {
      push(columns, (last!.at + at) / 2, null, null, null);
    }
    push(columns, at, allowed, degraded, denied);
    last = point;
  }
  return columns;
}

/** The last seconds may not be merged yet when the history is read; frames go on from there. */
function leaveNoSeam(columns: Columns, nextAt: number): void {
  const known = columns.allowed.findLastIndex((one) => one !== null);
  if (known < 0 || nextAt - columns.at[known]! > GAP_SECONDS) return;
  for (const column of Object.values(columns)) column.length = known + 1;
}

type Columns = { [K in keyof ChartData]: ChartData[K][number][] };

function push(
  columns: Columns,
  at: number,
  allowed: number | null,
  degraded: number | null,
  denied: number | null,
): void {
  columns.at.push(at);
  columns.allowed.push(allowed);
  columns.degraded.push(degraded);
  columns.denied.push(denied);
}

const REFRESH_MS: Readonly<Record<Horizon, number>> = {
  seconds: Infinity,
  minutes: 60_000,
  hours: 300_000,
};

/** What is kept of a series at the horizon that is looked at, or at the longest that it has. */
export function useHistory(name: string, longest: Horizon = 'hours') {
  const loadedMs = useSignal(0);
  const loadedFor = useSignal('');
  const idOf = (of: Horizon): string => `${name} ${of === 'hours' ? longest : of}`;
  useSignalEffect(() => {
    const [id, of] = [idOf(horizon.value), horizon.value === 'hours' ? longest : horizon.value];
    const now = frameNow.value;
    if (now === null || seriesOf(now, name) === undefined) return;
    const isOld = now.nowMs - loadedMs.peek() > (name.includes(':') ? 5000 : REFRESH_MS[of]);
    const isNone = of === 'hours' && histories.peek().get(id) === null;
    if (isNone || (loadedFor.peek() === id && !isOld)) return;
    loadedFor.value = id;
    loadedMs.value = now.nowMs;
    void loadHistory(name, of);
  });
  return histories.value.get(idOf(horizon.value));
}

/** The charts of a series; of all requests unless it is another. */
export function RateCharts({ frame, name = 'total' }: { frame: PageFrame; name?: string }) {
  const kept = useHistory(name);
  const { capacity } = frame.state.quota ?? {};
  const total = seriesOf(frame, name);
  const data = chartData(kept, horizon.value === 'seconds' && name === 'total' ? recent : []);
  if (data.at.length < 2) {
    return kept === null && horizon.value === 'hours' ? (
      <Empty title="Nothing is kept of it for so long.">
        Hours are kept of all requests, and of the names that came first.
      </Empty>
    ) : (
      <Empty title="No figures for this span yet.">
        They are kept from now on: {HORIZON_NAMES[horizon.value]} back at most.
      </Empty>
    );
  }
  const { usual } = frame;
  const usually =
    name === 'total' && usual !== null && frame.state.store?.isUp !== false
      ? `; usually ${count(usual.denied)}/s are denied`
      : '';
  const all = `${shown(name)}: ${count(total?.rate ?? 0)} a second now, ${count(total?.denied ?? 0)} of them denied`;
  const { marks } = frame.state;
  const spanSeconds = SPANS[horizon.value];
  // What happened since the last slot is in the chart as well.
  const end = Math.max(data.at.at(-1)!, frame.nowMs / 1000);
  const chart = { data, marks, spanSeconds, end };
  return (
    <>
      <Chart
        {...chart}
        part="all"
        height={150}
        capacity={name === 'total' ? capacity : undefined}
        label={all}
      />
      <h3 class="sub">
        Of these, not answered normally <span>on its own scale{usually}</span>
      </h3>
      <Chart
        {...chart}
        part="troubled"
        height={132}
        label={`Denied or degraded: ${count(total?.denied ?? 0)} a second denied now`}
      />
      <AsTable data={data} marks={marks.filter(({ atMs }) => atMs / 1000 > end - spanSeconds)} />
    </>
  );
}

const MOST_ROWS = 12;

/** From the first that is known to the newest, which is always there; and all events, of which a chart names a few. */
function AsTable({ data, marks }: { data: ChartData; marks: readonly Mark[] }) {
  const isOpen = useSignal(false);
  const isKnown = (value: number | null): boolean => value !== null;
  const first = Math.max(0, data.allowed.findIndex(isKnown));
  const last = data.allowed.findLastIndex(isKnown);
  const step = Math.ceil((last - first + 1) / MOST_ROWS);
  const rows: number[] = [];
  for (let row = last; row >= first; row -= step) rows.unshift(row);
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? 'no data' : count(value);
  return (
    <details class="as-table" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Show as table</summary>
      {isOpen.value && (
        <Table heads={['Time', { n: 'Allowed/s' }, { n: 'Degraded/s' }, { n: 'Denied/s' }]}>
          {rows.map((index) => (
            <tr key={index}>
              <td>{clock(data.at[index]! * 1000)}</td>
              <td class="n">{text(data.allowed[index])}</td>
              <td class="n">{text(data.degraded[index])}</td>
              <td class="n">{text(data.denied[index])}</td>
            </tr>
          ))}
        </Table>
      )}
      {isOpen.value &&
        marks.map(({ atMs, text: what }) => (
          <p key={atMs + what}>
            {time(atMs)} {shown(what)}
          </p>
        ))}
    </details>
  );
}
