import { plain } from '../observability/alerts/alert.js';
import { alertText } from '../observability/alerts/alert-words.js';
import { leftOut, onLatest, type FleetState, type SeriesState } from '../observability/state.js';
import { figure, percent } from '../observability/figures.js';
import { isShort, limitedKeysOf } from '../observability/limited.js';
import { dayOf, timeOf, verdict } from '../observability/verdict.js';

export const VIEWS = ['overview', 'apps', 'policies', 'resources', 'nodes', 'alerts'] as const;
export type TopView = (typeof VIEWS)[number];

/** The figures, and the way in which they are shown. */
export interface TopState {
  readonly fleet: FleetState | undefined;
  /** Decisions per second as they were seen, oldest first. */
  readonly rates: readonly number[];
  /** Since the last figures, in seconds. */
  readonly ageS: number;
  /** Why there are none. */
  readonly fault: string | undefined;
  readonly view: TopView;
  /** The column that a table is sorted by; undefined: as it comes. */
  readonly sortBy: number | undefined;
  readonly filter: string;
  /** The filter is being typed. */
  readonly isTyping: boolean;
  readonly isPaused: boolean;
  readonly showsHelp: boolean;
}

export type Style = 'plain' | 'strong' | 'dim' | 'good' | 'info' | 'warning' | 'bad';

export interface ScreenLine {
  readonly text: string;
  readonly style: Style;
}

const line = (text: string, style: Style = 'plain'): ScreenLine => ({ text, style });

/** Figures older than this are not of now. */
const OLD_S = 10;
const BARS = '▁▂▃▄▅▆▇█';
const SPARK_WIDTH = 28;

/** The whole screen, from the top: as many lines as there are, each no longer than the screen is wide. */
export function topFrame(state: TopState, columns: number, rows: number): ScreenLine[] {
  const lines = state.showsHelp
    ? helpLines()
    : [...headLines(state, rows), ...bodyLines(state, columns)];
  const foot = footOf(state);
  const most = foot === undefined ? rows : rows - 1;
  const shown = lines.slice(0, Math.max(most, 1));
  if (foot !== undefined) {
    while (shown.length < most) shown.push(line(''));
    shown.push(foot);
  }
  return shown.map(({ text, style }) => ({ text: cut(text, columns), style }));
}

/** All of it, for a file or a pipe. */
export function topText(state: TopState): string {
  const lines = [...headLines(state, Infinity), ...bodyLines(state, Infinity)];
  return lines.map(({ text }) => text.trimEnd()).join('\n');
}

function cut(text: string, columns: number): string {
  const signs = [...text];
  return signs.length <= columns ? text : `${signs.slice(0, Math.max(columns - 1, 0)).join('')}…`;
}

/** With fewer lines the first rows of the table matter more. */
const ROWS_FOR_WHY = 12;

function headLines(state: TopState, rows: number): ScreenLine[] {
  const { fleet, ageS, fault } = state;
  if (fleet === undefined) {
    const why = fault ?? 'no process has written figures yet (is one running, with this --prefix?)';
    return [line('weir top', 'strong'), line(`Waiting: ${why}`, 'warning')];
  }
  const { cluster, nodeCount, config, series, store, quota } = fleet;
  const redis = series.find(({ name }) => name === 'store')?.p99Ms;
  const { on } = onLatest(fleet);
  const revision =
    config === undefined ? '' : `, ${on === nodeCount ? 'all' : figure(on)} on rev ${config.revision}`; // oxfmt-ignore
  const p99 =
    store === undefined || redis === undefined ? '' : `  Redis p99 ${redis.toFixed(1)} ms`;
  const nodes = `${figure(nodeCount)} ${nodeCount === 1 ? 'node' : 'nodes'}`;
  const { text, why: cause, level, sinceMs } = verdict(fleet);
  // Long sentences are cut at their end.
  const since = sinceMs === undefined ? undefined : `since ${timeOf(sinceMs, fleet.atMs)}`;
  const second = [since, cause].filter(Boolean).join('; ');
  const mark = level === 'good' || level === 'info' ? ' ' : '!';
  const lines = [line(`weir top  ${plain(cluster)}  ${nodes}${revision}${p99}`, 'strong')];
  if (fault !== undefined || ageS >= OLD_S) {
    const why = fault === undefined ? '' : `: ${fault}`;
    lines.push(line(`! last heard ${Math.round(ageS)} s ago${why}`, 'warning'));
  }
  lines.push(line(`${mark} ${text}`, level === 'good' ? 'good' : level));
  if (second !== '' && rows >= ROWS_FOR_WHY) lines.push(line(`  ${second}`));
  const missing = leftOut(fleet);
  if (missing !== '') lines.push(line(`! figures ${missing}`, 'warning'));
  if (quota !== undefined) lines.push(quotaLine(quota, isShort(fleet)));
  lines.push(decisionsLine(fleet, state.rates));
  return lines;
}

function quotaLine(quota: NonNullable<FleetState['quota']>, isOver: boolean): ScreenLine {
  const parts = [
    ['capacity', quota.capacity],
    ['asked', quota.demand],
    ['stock', quota.stock],
    ['leased', quota.outstanding],
  ] as const;
  const known = parts.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} ${figure(value)}`],
  );
  const over = isOver ? '  OVERLOADED' : '';
  return line(`  ${known.join('  ')}${over}`, isOver ? 'bad' : 'plain');
}

function decisionsLine({ series }: FleetState, rates: readonly number[]): ScreenLine {
  const total = series.find(({ name }) => name === 'total');
  const degraded = total?.degraded.reduce((sum, one) => sum + one, 0) ?? 0;
  return line(
    `  decisions ${sparkline(rates.slice(-SPARK_WIDTH))} ${figure(total?.rate ?? 0)}/s` +
      `  denied ${figure(total?.denied ?? 0)}/s  degraded ${figure(degraded)}/s` +
      `  errors ${figure(total?.errors ?? 0)}/s`,
  );
}

function sparkline(values: readonly number[]): string {
  const most = Math.max(...values, 0);
  const bar = (value: number): string =>
    BARS[most === 0 ? 0 : Math.min(BARS.length - 1, Math.floor((value / most) * BARS.length))]!;
  return values.map(bar).join('');
}

/** A table of a view: the first column is the name, the others are figures or texts. */
interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly (string | number | undefined)[])[];
  /** The column by which it is sorted, if nobody chooses another. */
  readonly sortBy: number;
}

function bodyLines(state: TopState, columns: number): ScreenLine[] {
  const { fleet } = state;
  if (fleet === undefined) return [];
  const hasApps = fleet.quota !== undefined && fleet.quota.apps.length > 0;
  const view = state.view === 'overview' ? (hasApps ? 'apps' : 'policies') : state.view;
  const table = TABLES[view](fleet, columns);
  const needle = state.filter.toLowerCase();
  const sortBy = (state.sortBy ?? table.sortBy) % table.head.length;
  const rows = table.rows
    .filter(([name]) => String(name).toLowerCase().includes(needle))
    .sort((one, other) => compared(one[sortBy], other[sortBy]));
  if (rows.length === 0) {
    const why = needle === '' ? `no ${view} yet` : `no ${view} with '${plain(state.filter)}'`;
    return [line(''), line(`  ${why}`, 'dim')];
  }
  return [line(''), ...tableLines({ ...table, rows }, sortBy)];
}

/** Figures fall, texts rise. */
function compared(one: string | number | undefined, other: string | number | undefined): number {
  if (typeof one === 'string' || typeof other === 'string') {
    return String(one ?? '').localeCompare(String(other ?? ''));
  }
  return (other ?? -1) - (one ?? -1);
}

function tableLines({ head, rows }: Table, sortBy: number): ScreenLine[] {
  const cells = rows.map((row) =>
    row.map((value) => (typeof value === 'number' ? figure(value) : plain(value ?? ''))),
  );
  const heads = head.map((name, index) => `${name}${index === sortBy ? '▼' : ''}`);
  const widths = heads.map((name, column) =>
    Math.max([...name].length, ...cells.map((row) => [...row[column]!].length)),
  );
  const isFigure = head.map((_, column) =>
    rows.every((row) => row[column] === undefined || typeof row[column] === 'number'),
  );
  const written = (row: readonly string[]): string =>
    `  ${row
      .map((text, column) => {
        const pad = ' '.repeat(widths[column]! - [...text].length);
        return isFigure[column] ? `${pad}${text}` : `${text}${pad}`;
      })
      .join('  ')}`;
  return [line(written(heads), 'dim'), ...cells.map((row) => line(written(row)))];
}

const MOST_BAR = 18;
const ROOM_FOR_BAR = 78;

/** How much of its ceiling an app uses; a bar where there is room for one. */
function useBar(part: number, columns: number): string {
  const text = percent(part).padStart(5);
  if (columns < ROOM_FOR_BAR) return text;
  const full = Math.min(MOST_BAR, Math.round(part * MOST_BAR));
  return `${'█'.repeat(full)}${'░'.repeat(MOST_BAR - full)} ${text}`;
}

const named = ({ series }: FleetState, kind: string): readonly SeriesState[] =>
  series.filter(({ name }) => name.startsWith(`${kind}:`));

const nameOf = ({ name }: SeriesState): string => name.slice(name.indexOf(':') + 1);

const TABLES: Readonly<
  Record<Exclude<TopView, 'overview'>, (fleet: FleetState, columns: number) => Table>
> = {
  apps: ({ quota }, columns) => ({
    head: ['APP', 'PRIO', 'PROMISED', 'USED/S', 'OF CEILING', 'DENIED/S', 'NODES'],
    rows: (quota?.apps ?? []).map(
      ({ app, priority = 3, guaranteed, used, burst, denied, nodes }) => [
        ...[app, priority, guaranteed, used, useBar(used / burst, columns), denied, nodes],
      ],
    ),
    sortBy: 5,
  }),
  policies: (fleet) => ({
    head: ['POLICY', 'DECISIONS/S', 'DENIED/S', 'DENIED'],
    rows: named(fleet, 'policy').map((one) => [
      ...[nameOf(one), one.rate, one.denied, percent(one.rate > 0 ? one.denied / one.rate : 0)],
    ]),
    sortBy: 2,
  }),
  resources: (fleet) => ({
    head: ['RESOURCE', 'CALLS/S', 'ERRORS/S', 'P99 MS', 'DEGRADED/S', 'BREAKER', 'STATE'],
    rows: fleet.resources.map(({ resource, breaker, phase, percent: part }) => {
      const one = fleet.series.find(({ name }) => name === `resource:${resource}`);
      const degraded = one?.degraded.reduce((sum, level) => sum + level, 0) ?? 0;
      const state = phase === 'ramp' ? `ramp ${part} %` : (phase ?? '');
      return [resource, one?.rate ?? 0, one?.errors ?? 0, one?.p99Ms, degraded, breaker, state];
    }),
    sortBy: 1,
  }),
  nodes: ({ nodes }) => ({
    head: ['NODE', 'REQUESTS/S', 'DENIED/S', 'REVISION', 'STATE'],
    rows: nodes.map(({ node, rate, denied, revision, storeIsUp, isSilent, open }) => {
      const well = open === undefined ? 'ok' : `breaker open: ${open.join(', ')}`;
      const state = isSilent ? 'silent' : storeIsUp ? well : 'Redis is away';
      return [node, rate, denied, revision, state];
    }),
    sortBy: 1,
  }),
  alerts: (fleet) => ({
    head: ['WHAT', 'STATE', 'SERIES OR POLICY', 'SINCE OR DENIED', 'WHY'],
    rows: [
      ...fleet.alerts.map((alert) => {
        const { rule, state, series, sinceMs } = alert;
        const at = dayOf(sinceMs, fleet.atMs) + new Date(sinceMs).toISOString().slice(11, 19);
        return [rule, state, series, at, alertText(alert)];
      }),
      // The figures of policies are not in the fleet's.
      ...limitedKeysOf(fleet, () => undefined).map(({ who, policy, denied, why }) => {
        return [`key ${who}`, 'denied', policy, `${figure(denied)} in 1 min`, why];
      }),
    ],
    sortBy: 1,
  }),
};

function footOf({ view, filter, isTyping, isPaused, fleet }: TopState): ScreenLine | undefined {
  if (isTyping) return line(`/${filter}`, 'strong');
  const parts = [
    `${VIEWS.indexOf(view) + 1} ${view}`,
    ...(filter === '' ? [] : [`filter '${plain(filter)}'`]),
    ...(isPaused ? ['PAUSED'] : []),
    ...(fleet === undefined ? [] : [`by ${plain(fleet.leader)}`]),
    '? help  q quit',
  ];
  return line(parts.join('   '), 'dim');
}

function helpLines(): ScreenLine[] {
  return [
    line('weir top', 'strong'),
    line(''),
    ...VIEWS.map((view, index) => line(`  ${index + 1}  ${view}`)),
    line('  s  sort by the next column'),
    line('  /  show only names with what you type; Enter ends it, Escape forgets it'),
    line('  p  pause'),
    line('  ?  this page'),
    line('  q  quit'),
  ];
}
