import { type Alert } from '../alerts/alert.js';
import { BREAKERS, MODES, PHASES } from '../node-condition.js';
import {
  type AppState,
  type ConfigState,
  type FleetNode,
  type FleetState,
  type LearningState,
  type LineState,
  type Mark,
  type QuotaState,
  type ResourceState,
  type SeriesState,
  type ShownHotValue,
  type ShownKey,
  type StoreState,
} from '../state.js';
import { type Unreadable } from './snapshot.js';

const VERSION = 1;
const MOST_BYTES = 65_536;
/** A text that is longer is not of ours, and is not even looked at. */
const MOST_READ = 4 * MOST_BYTES;
const LEAST_SERIES = 4;

/** The fleet as it is on the board. The ends of lists that do not fit are left out, the quietest series first. */
export function encodeMerged(state: FleetState): string {
  const [total, store, ...named] = state.series;
  const byRate = named.sort((one, other) => other.rate - one.rate);
  let shown: FleetState = { ...state, series: [total!, store!, ...byRate] };
  let text = JSON.stringify({ v: VERSION, ...shown });
  while (Buffer.byteLength(text) > MOST_BYTES && shown.series.length > LEAST_SERIES) {
    const { nodes, series, alerts, resources, marks, quota } = shown;
    shown = {
      ...shown,
      ...{ nodes: half(nodes), series: half(series), alerts: half(alerts) },
      // The latest of them.
      ...{ resources: half(resources), marks: marks.slice(-half(marks).length) },
      quota: quota && { ...quota, apps: half(quota.apps) },
    };
    text = JSON.stringify({ v: VERSION, ...shown });
  }
  return text;
}

const half = <T>(list: readonly T[]): readonly T[] => list.slice(0, Math.ceil(list.length / 2));

/** Checks all of it: anybody who may write to the store can have put it there, and readers rely on every field. */
export function decodeMerged(text: string): FleetState | Unreadable {
  if (text.length > MOST_READ) return 'damaged';
  try {
    const { v, ...state } = JSON.parse(text) as { v?: unknown };
    if (typeof v !== 'number') return 'damaged';
    if (v !== VERSION) return 'other version';
    return isFleet(state) ? (state as unknown as FleetState) : 'damaged';
  } catch {
    return 'damaged';
  }
}

/** For people who look for figures and find these. */
export const unreadableText = (why: Unreadable): string =>
  why === 'damaged'
    ? 'the figures that are there are damaged'
    : 'the figures that are there are of another version of nestjs-weir';

type Check = (value: unknown) => boolean;

/** Rates, numbers, and instants, of which no later one is a date. */
const isCount: Check = (value) => isBetween(value, 0, 8e15);
const isNumber: Check = (value) => isBetween(value, -8e15, 8e15);
const isBetween = (value: unknown, least: number, most: number): boolean =>
  typeof value === 'number' && value >= least && value <= most;
/** A figure that is none is null in JSON. */
const isFigure: Check = (value) => value === null || isNumber(value);
const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const oneOf =
  (...all: readonly unknown[]): Check =>
  (value) =>
    all.includes(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
/** All fields of a type; what newer versions add is no fault. */
const shapeOf = <T>(fields: { readonly [K in keyof Required<T>]: Check }): Check => {
  const all = Object.entries<Check>(fields);
  return (value) => isObject(value) && all.every(([name, check]) => check(value[name]));
};

const isSeries = shapeOf<SeriesState>({
  ...{ name: isText, rate: isCount, denied: isCount, errors: isCount, used: isCount },
  degraded: (value) => listOf(isCount)(value) && (value as readonly unknown[]).length === 4,
  ...{ p50Ms: optional(isCount), p99Ms: optional(isCount), deniedInMinute: optional(isCount) },
  ...{ deniedForMs: optional(isCount), degradedForMs: optional(isCount) },
});

const isDeniedKey = shapeOf<ShownKey>({
  ...{ policy: isText, key: isText, denied: isCount },
  source: optional(oneOf('local', 'store', 'fallback')),
  failureMode: optional(oneOf('local', 'open', 'closed')),
});

const isHotValue = shapeOf<ShownHotValue>({ policy: isText, key: isText, perPeriod: isCount });

const isStore = shapeOf<StoreState>({
  isUp: isFlag,
  awayNodes: isCount,
  sinceMs: optional(isCount),
});

const isModes: Check = (value) =>
  isObject(value) &&
  Object.entries(value).every(([mode, nodes]) => oneOf(...MODES)(mode) && isCount(nodes));

const isApp = shapeOf<AppState>({
  ...{ app: isText, guaranteed: isCount, burst: isCount, priority: optional(isNumber) },
  ...{ used: isCount, denied: isCount, deniedByCluster: optional(isCount) },
  ...{ demand: optional(isNumber), outstanding: optional(isNumber) },
  ...{ nodes: optional(isCount), modes: isModes },
});

const isQuota = shapeOf<QuotaState>({
  ...{ capacity: optional(isCount), demand: optional(isNumber), stock: optional(isNumber) },
  ...{ depth: optional(isNumber), outstanding: optional(isNumber), overloaded: isFlag },
  apps: listOf(isApp),
});

const isResource = shapeOf<ResourceState>({
  ...{ resource: isText, breaker: optional(oneOf(...BREAKERS)), openNodes: isCount },
  ...{ phase: optional(oneOf(...PHASES)), percent: optional(isCount) },
});

const isAlert = shapeOf<Alert>({
  ...{ rule: isText, series: isText, text: isText },
  ...{ fingerprint: isText, nodeId: isText, cluster: isText },
  state: oneOf('pending', 'firing', 'resolved'),
  severity: oneOf('info', 'warning', 'critical'),
  ...{ value: isFigure, threshold: isFigure, isTrend: optional(isFlag), muted: isFlag },
  ...{ sinceMs: isCount, endedMs: optional(isCount), reason: optional(isText) },
});

const isMark = shapeOf<Mark>({
  ...{ atMs: isCount, text: isText },
  kind: oneOf('overload', 'quota', 'revision', 'store', 'mode', 'epoch', 'breaker'),
});

const isNode = shapeOf<FleetNode>({
  ...{ node: isText, rate: isCount, denied: isCount, revision: isCount },
  ...{ storeIsUp: isFlag, isSilent: isFlag },
  apps: optional(listOf(shapeOf<{ app: string; used: number }>({ app: isText, used: isCount }))),
  open: optional(listOf(isText)),
});

const isFleet = shapeOf<FleetState>({
  ...{ atMs: isCount, cluster: isText, nodeCount: isCount, leader: isText, isShared: isFlag },
  ...{ damaged: isCount, otherVersions: isCount },
  ...{ series: listOf(isSeries), deniedKeys: listOf(isDeniedKey) },
  hotValues: optional(listOf(isHotValue)),
  ...{ store: optional(isStore), quota: optional(isQuota) },
  ...{ resources: listOf(isResource), alerts: listOf(isAlert), marks: listOf(isMark) },
  ...{ nodes: listOf(isNode) },
  line: optional(shapeOf<LineState>({ standing: isFlag, waiting: isCount })),
  config: optional(
    shapeOf<ConfigState>({ revision: isCount, behind: isCount, heard: optional(isCount) }),
  ),
  learning: optional(shapeOf<LearningState>({ minutes: isCount, needed: isCount })),
});
