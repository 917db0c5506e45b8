import { computed, effect, signal } from '@preact/signals';
import { type Horizon } from '../../observability/series.js';
import { type SeriesHistory } from '../../observability/series-history.js';
import { type Changes, withChanges } from '../changes.js';
import { type PageFrame } from '../frame.js';

export const VIEWS = ['overview', 'policies', 'fleet', 'resources', 'config', 'capacity'] as const;
export type View = (typeof VIEWS)[number];
export const HORIZONS: readonly Horizon[] = ['seconds', 'minutes', 'hours'];
export const HORIZON_NAMES: Readonly<Record<Horizon, string>> = {
  seconds: '2 min',
  minutes: '3 h',
  hours: '7 d',
};

/** The frame of the last second; null before the first. */
export const frame = signal<PageFrame | null>(null);
/** How the stream is. */
export const link = signal<'connecting' | 'live' | 'lost' | 'refused'>('connecting');
export const paused = signal(false);
/** When the last frame came, and the clock of the page, by the second. */
export const heardMs = signal(0);
export const clockMs = signal(Date.now());

export const view = signal<View>('overview');
export const horizon = signal<Horizon>('seconds');
export const filter = signal('');
/** The name of what the side sheet shows, if it is open: a series. */
export const opened = signal<string | null>(null);
export const theme = signal(document.documentElement.dataset.theme ?? 'light');
/** The page is of an earlier deployment than what serves it now. */
export const outdated = signal(false);
export const isStale = computed(
  () => link.value === 'lost' && clockMs.value - heardMs.value > 3000,
);

/** The frame that ticks are changes of; a page that is paused goes on hearing them. */
let latest: PageFrame | undefined;
let build: string | undefined;
let source: EventSource | undefined;
let retryMs = 1000;
let retry: ReturnType<typeof setTimeout> | undefined;

function received(next: PageFrame): void {
  latest = next;
  build ??= next.build;
  if (next.build !== build) outdated.value = true;
  heardMs.value = Date.now();
  link.value = 'live';
  retryMs = 1000;
  if (!paused.value) frame.value = next;
}

function connect(): void {
  clearTimeout(retry);
  source?.close();
  const stream = new EventSource('api/stream');
  source = stream;
  const on = (name: string, take: (data: unknown) => void): void =>
    stream.addEventListener(name, ({ data }: MessageEvent<string>) => take(JSON.parse(data)));
  on('state', (frame) => received(frame as PageFrame));
  on('tick', (changes) => received(withChanges(latest, changes as Changes) as PageFrame));
  stream.onerror = () => {
    if (source !== stream) return;
    stream.close();
    // The server ends a stream every few minutes, to ask its guards again: then the next one comes at once.
    const wasLive = link.value === 'live' && Date.now() - heardMs.value < 3000;
    if (!wasLive || retryMs > 1000) link.value = frame.value === null ? 'connecting' : 'lost';
    retry = setTimeout(connect, wasLive && retryMs === 1000 ? 250 : retryMs);
    retryMs = Math.min(30_000, retryMs * 2);
    void whyNot();
  };
}

/** An event source does not say why it was refused. */
async function whyNot(): Promise<void> {
  try {
    const { status } = await fetch('api/state', { method: 'GET' });
    if (status === 401 || status === 403) link.value = 'refused';
  } catch {
    link.value = frame.value === null ? 'connecting' : 'lost';
  }
}

export function retryNow(): void {
  retryMs = 1000;
  connect();
}

/** A tab that nobody sees needs no frames. */
function followVisibility(): void {
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      clearTimeout(retry);
      source?.close();
      source = undefined;
    } else if (source === undefined) retryNow();
  });
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly body: Readonly<Record<string, unknown>>,
  ) {
    super(message);
  }
}

/** Asks the server; rejects with what it says. */
export async function ask<T>(
  path: string,
  body?: object,
  method = body === undefined ? 'GET' : 'POST',
): Promise<T> {
  const sent = body && {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'x-weir-request': '1' },
  };
  const response = await fetch(`api/${path}`, { method, ...sent });
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer as T;
  const detail = typeof answer.detail === 'string' ? answer.detail : undefined;
  const said = typeof answer.message === 'string' ? answer.message : undefined;
  throw new ApiError(
    response.status,
    detail ?? said ?? `The answer was ${response.status}.`,
    answer,
  );
}

/** The history of each series, by name and horizon; null where nothing is kept for so long. */
export const histories = signal<ReadonlyMap<string, SeriesHistory | null>>(new Map());

export async function loadHistory(name: string, of: Horizon): Promise<void> {
  let found: SeriesHistory | null = null;
  try {
    found = await ask(`series?name=${encodeURIComponent(name)}&horizon=${of}`);
  } catch (error) {
    if ((error as ApiError).status !== 404) return;
  }
  histories.value = new Map(histories.value).set(`${name} ${of}`, found);
}

/** The view is in the address, so that a link to it can be sent. */
function followAddress(): void {
  const read = (): void => {
    const [name = '', query = ''] = location.hash.slice(1).split('?');
    const said = new URLSearchParams(query);
    view.value = VIEWS.find((one) => one === name) ?? 'overview';
    horizon.value = HORIZONS.find((one) => one === said.get('h')) ?? 'seconds';
    filter.value = said.get('q') ?? '';
    opened.value = said.get('of');
  };
  addEventListener('hashchange', read);
  read();
  effect(() => {
    const said = new URLSearchParams();
    if (horizon.value !== 'seconds') said.set('h', horizon.value);
    if (filter.value !== '') said.set('q', filter.value);
    if (opened.value !== null) said.set('of', opened.value);
    const query = said.toString();
    const hash = `#${view.value}${query === '' ? '' : `?${query}`}`;
    if (location.hash !== hash) history.replaceState(null, '', hash);
  });
}

export function go(to: View): void {
  opened.value = null;
  filter.value = '';
  view.value = to;
}

const { dataset } = document.documentElement;

function showTheme(isDark: boolean): string {
  return (theme.value = dataset.theme = isDark ? 'dark' : 'light');
}

/** A system that gets dark in the evening takes the page along, unless somebody has chosen. */
function followSystem(): void {
  matchMedia('(prefers-color-scheme: dark)').onchange = ({ matches }) => {
    if (dataset.chosen === undefined) showTheme(matches);
  };
}

export function switchTheme(): void {
  const next = showTheme(theme.value !== 'dark');
  dataset.chosen = '';
  try {
    localStorage.setItem('weir-theme', next);
  } catch {
    // A browser that keeps nothing begins with the system's again.
  }
}

export function start(): void {
  followAddress();
  followVisibility();
  followSystem();
  connect();
  setInterval(() => (clockMs.value = Date.now()), 1000);
}
