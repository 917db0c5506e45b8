import { type Series } from './series.js';

/** What was seen in the last ten seconds. */
export interface MonitorState {
  /** Wall-clock milliseconds. */
  readonly atMs: number;
  readonly nodeId: string;
  /** `total` and `store` first, then what is watched by name. */
  readonly series: readonly SeriesState[];
  /** The keys that are denied most; empty with `keys: 'off'`. */
  readonly deniedKeys: readonly ShownKey[];
}

/** Rates are per second. */
export interface SeriesState {
  /** `total`, `store`, `app:…`, `policy:…` or `resource:…`. */
  readonly name: string;
  readonly rate: number;
  readonly denied: number;
  readonly errors: number;
  /** By degrade level 1 to 4. */
  readonly degraded: readonly [number, number, number, number];
  /** Tokens. */
  readonly used: number;
  /** Milliseconds, of the last whole minute and this one; undefined where no times are taken. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

export interface ShownKey {
  readonly policy: string;
  /** The key itself, or the beginning of its hash: the same on all nodes of a fleet. */
  readonly key: string;
  /** About how often, with what is long ago counted less. */
  readonly denied: number;
}

/** All nodes together, as one of them has merged it. */
export interface FleetState {
  /** When it was merged: wall-clock milliseconds of the node that did. */
  readonly atMs: number;
  /** The node that has merged it. */
  readonly leader: string;
  /** False where the store is in memory: then the fleet is this process. */
  readonly isShared: boolean;
  /** The busiest first, at most 200. */
  readonly nodes: readonly FleetNode[];
  readonly nodeCount: number;
  readonly series: readonly SeriesState[];
  readonly deniedKeys: readonly ShownKey[];
  /** Nodes whose figures could not be read, and nodes with another version of them. */
  readonly damaged: number;
  readonly otherVersions: number;
}

/** One node of the fleet, as it was seen last. */
export interface FleetNode {
  readonly node: string;
  /** Requests and denials per second. */
  readonly rate: number;
  readonly denied: number;
  /** Of the configuration that holds there. */
  readonly revision: number;
  readonly storeIsUp: boolean;
  /** It has written nothing for a while, and did not say that it leaves. */
  readonly isSilent: boolean;
}

const STATE_SECONDS = 10;

export function stateOf(series: Series, nowMicros: number): SeriesState {
  const span = series.seconds.sum(nowMicros, STATE_SECONDS);
  const perSecond = (count: number): number => (span.spanMs > 0 ? (count * 1000) / span.spanMs : 0);
  const times = series.times(nowMicros, 2, -1);
  const inMs = (part: number): number | undefined =>
    times.count === 0 ? undefined : times.quantile(part) / 1000;
  return {
    name: series.name,
    rate: perSecond(span.count),
    denied: perSecond(span.denied),
    errors: perSecond(span.errors),
    degraded: [
      perSecond(span.degraded1),
      perSecond(span.degraded2),
      perSecond(span.degraded3),
      perSecond(span.degraded4),
    ],
    used: perSecond(span.used),
    p50Ms: inMs(0.5),
    p99Ms: inMs(0.99),
  };
}
