import { type RecoveryPhase } from '../degradation/core/contract.js';
import { type DecisionSource } from '../limiter/decision.js';
import { type FailureMode } from '../limiter/policy-options.js';
import { type NodeMode } from '../local/lease-calls.js';
import { type BreakerKind } from '../protection/breaker-state.js';
import { type Alert } from './alerts/alert.js';
import { type Ring, type Span, type Stretch } from './rings.js';
import { type Series } from './series.js';

/** A process, or all that share the store, as it is seen: figures of the last seconds, and states as they are. */
export interface WatchedState {
  /** Wall-clock milliseconds. */
  readonly atMs: number;
  /** The cluster, or the service if there is no cluster. */
  readonly cluster: string;
  /** Processes that share the store; 1 in memory. */
  readonly nodeCount: number;
  /** `total` and `store` first, then what is watched by name. */
  readonly series: readonly SeriesState[];
  /** The keys that are denied most; empty with `keys: 'off'`. */
  readonly deniedKeys: readonly ShownKey[];
  /** Values in demand, of policies with `hot`; shown as denied keys are. Not told by older versions. */
  readonly hotValues?: readonly ShownHotValue[];
  /** Undefined where the store is in memory. */
  readonly store: StoreState | undefined;
  /** Undefined where there are no quotas. */
  readonly quota: QuotaState | undefined;
  /** The resources that are protected or degraded, by name. */
  readonly resources: readonly ResourceState[];
  /** Requests stand in line before the application, on any node; undefined where there is no line. */
  readonly line: LineState | undefined;
  /** Undefined before any configuration is known. */
  readonly config: ConfigState | undefined;
  /** Those that fire first. */
  readonly alerts: readonly Alert[];
  /** Undefined once enough is known to say what is usual. */
  readonly learning: LearningState | undefined;
  /** The latest events, oldest first: for charts. */
  readonly marks: readonly Mark[];
}

/** This process. */
export interface MonitorState extends WatchedState {
  readonly nodeId: string;
}

/** Rates are per second, of the last ten seconds; or of the last three where there is more, of six where there is less, beyond chance. */
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
  /** Denials of the last minute; left out where there were none, and by older versions. */
  readonly deniedInMinute?: number;
  /** For how long many have been turned away without a break: to five seconds, and to a minute of longer ago. Left out where few are, and where it is not known. */
  readonly deniedForMs?: number;
  /** The same of degraded answers. */
  readonly degradedForMs?: number;
}

/** A key that is denied often, shown as `monitor.keys` allows. */
export interface ShownKey {
  readonly policy: string;
  /** The key itself, or the beginning of its hash: the same on all nodes of a fleet. */
  readonly key: string;
  /** About how often in the last minute. */
  readonly denied: number;
  /** Where it was denied last, by the node that denied it most; not told by older versions. */
  readonly source?: DecisionSource | undefined;
  /** Of its policy there, where it was denied without the store; not told by older versions. */
  readonly failureMode?: FailureMode | undefined;
}

/** A value of a policy with `hot` that is asked for most, shown as `monitor.keys` allows. */
export interface ShownHotValue {
  readonly policy: string;
  readonly key: string;
  /** Tokens that it asked for in the last period of its policy; rather more than less. */
  readonly perPeriod: number;
}

/** The state of the store. */
export interface StoreState {
  readonly isUp: boolean;
  /** Nodes that it does not answer. */
  readonly awayNodes: number;
  /** Since when that is so, in wall-clock milliseconds; undefined if it never changed, and where only other nodes have seen it. */
  readonly sinceMs: number | undefined;
}

/** Rates are tokens per second. What only the ledger knows is undefined where nobody has asked it. */
export interface QuotaState {
  /** Undefined where there is no cluster level. */
  readonly capacity: number | undefined;
  /** Asked for by all apps: as the ledger estimates it, and no less than what came. */
  readonly demand: number | undefined;
  /** Tokens that are there, of so many that fit. */
  readonly stock: number | undefined;
  readonly depth: number | undefined;
  readonly outstanding: number | undefined;
  readonly overloaded: boolean;
  readonly apps: readonly AppState[];
}

/** An app of the quota, as the monitor sees it. */
export interface AppState {
  readonly app: string;
  readonly guaranteed: number;
  readonly burst: number;
  /** 0 is served first; undefined where the document does not say, which is 3. */
  readonly priority: number | undefined;
  /** Tokens that were used, per second. */
  readonly used: number;
  /** Requests that were denied, per second. */
  readonly denied: number;
  /** Those of them that the cluster denied, and not the app's own quota; undefined where no node says. */
  readonly deniedByCluster?: number | undefined;
  readonly demand: number | undefined;
  readonly outstanding: number | undefined;
  /** Nodes that may serve it, whether they ask for it or not; as `processes` of `weir status`. */
  readonly nodes: number | undefined;
  /** Number of nodes by their mode. */
  readonly modes: Readonly<Partial<Record<NodeMode, number>>>;
}

/** The worst of all nodes. */
export interface ResourceState {
  readonly resource: string;
  /** Undefined where there is no breaker. */
  readonly breaker: BreakerKind | undefined;
  /** Nodes on which the breaker is open or half open. */
  readonly openNodes: number;
  /** Undefined where it is not degraded by anything. */
  readonly phase: RecoveryPhase | undefined;
  /** The part of the requests that reaches it, 0 to 100. */
  readonly percent: number | undefined;
}

/** The line in front of this process. */
export interface LineState {
  readonly standing: boolean;
  /** Requests in line. */
  readonly waiting: number;
}

/** The configuration in force, and who is behind. */
export interface ConfigState {
  /** The latest that any node has. */
  readonly revision: number;
  /** Nodes that have an earlier one. */
  readonly behind: number;
  /** Nodes that have told which one they have; the others are silent. Not told by older versions. */
  readonly heard?: number;
}

/** The nodes that are known to have the latest revision, and those that do not tell. */
export function onLatest({ config, nodeCount }: Pick<WatchedState, 'config' | 'nodeCount'>): {
  readonly on: number;
  readonly silent: number;
} {
  const { behind = 0, heard = nodeCount } = config ?? {};
  return { on: heard - behind, silent: nodeCount - heard };
}

/** Data on usual figures so far, while it is not enough. */
export interface LearningState {
  /** Minutes that are known, of those that must be. */
  readonly minutes: number;
  readonly needed: number;
}

/** Above this part of the requests denials are many, where it is not known yet what is usual. */
export const MANY_DENIED = 0.05;

/** The texts of marks that tell since when. */
export const OVERLOAD_BEGINS = 'overload begins';
export const OVERLOAD_ENDS = 'overload is over';
export const breakerOpens = (resource: string): string => `breaker of ${resource} opens`;
export const breakerCloses = (resource: string): string => `breaker of ${resource} is closed`;

/** Something that happened, for charts. */
export interface Mark {
  readonly atMs: number;
  readonly kind: 'overload' | 'quota' | 'revision' | 'store' | 'mode' | 'epoch' | 'breaker';
  /** A few words. */
  readonly text: string;
}

/** All nodes together, as one of them has merged it. */
export interface FleetState extends WatchedState {
  /** The node that has merged it; `atMs` is its clock's. */
  readonly leader: string;
  /** False where the store is in memory: then the fleet is this process. */
  readonly isShared: boolean;
  /** The busiest first, at most 200. */
  readonly nodes: readonly FleetNode[];
  /** Nodes whose figures could not be read, and nodes with another version of them. */
  readonly damaged: number;
  readonly otherVersions: number;
}

/** The nodes that are not in the figures, in words; empty where all of them are. */
export function leftOut({
  damaged,
  otherVersions,
}: Pick<FleetState, 'damaged' | 'otherVersions'>): string {
  const kinds = [
    otherVersions > 0 ? `${otherVersions} of another version` : '',
    damaged > 0 ? `${damaged} whose figures cannot be read` : '',
  ].filter(Boolean);
  return kinds.length === 0 ? '' : `without ${kinds.join(' and ')}`;
}

/** One node of the fleet, as it was seen last. */
export interface FleetNode {
  readonly node: string;
  /** Requests and denials per second. */
  readonly rate: number;
  readonly denied: number;
  /** Revision of the configuration that holds there. */
  readonly revision: number;
  readonly storeIsUp: boolean;
  /** The node has written nothing for a while, and did not say that it leaves. */
  readonly isSilent: boolean;
  /** Tokens per second of the apps that it serves, the busiest first; left out where there are none. */
  readonly apps?: readonly { readonly app: string; readonly used: number }[];
  /** Resources whose breaker is open or half open there; left out where there are none, and by older versions. */
  readonly open?: readonly string[];
}

const STATE_SECONDS = 10;
const NEWS_SECONDS = 3;
/** The times of three seconds before the last three. */
const BEFORE_SECONDS = [3, 5, 7];
/** News of a shorter time are of a look at the fleet that is not whole. */
const LEAST_NEWS_MS = 1500;
/** Standard deviations: so much is not chance, of a hundred series in an hour. */
const NOT_CHANCE = 4;
/** Nodes write a little earlier or later than they are looked at; so much of the rate may come of that. */
const UNEVEN = 0.15;
/** The minutes that most rules call usual, and the part of them that must be known. */
const USUAL_MINUTES = 5;
const NEEDED_MINUTES = Math.ceil(USUAL_MINUTES / 2);

export function stateOf(series: Series, nowMicros: number): SeriesState {
  const span = latest(series.seconds, nowMicros);
  const perSecond = (count: number): number => (span.spanMs > 0 ? (count * 1000) / span.spanMs : 0);
  const times = series.times(nowMicros, 2, -1);
  const inMs = (part: number): number | undefined =>
    times.count === 0 ? undefined : times.quantile(part) / 1000;
  const deniedInMinute = Math.round(series.seconds.stretch(nowMicros, 60).of('denied'));
  const deniedForMs = lasting(series, nowMicros, areManyDenied);
  const degradedForMs = lasting(series, nowMicros, areDegraded);
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
    ...(deniedInMinute > 0 && { deniedInMinute }),
    ...(deniedForMs > 0 && { deniedForMs }),
    ...(degradedForMs > 0 && { degradedForMs }),
  };
}

/**
 * A burst is seen at once, and its end when it has been calm for six seconds: what comes and goes by chance, or again and
 * again within the ten seconds, is told by these.
 */
function latest(seconds: Ring, nowMicros: number): Span {
  const all = seconds.sum(nowMicros, STATE_SECONDS);
  const news = seconds.sum(nowMicros, NEWS_SECONDS);
  if (news.spanMs < LEAST_NEWS_MS) return all;
  const change = (of: CountOf): number => changeFrom(all, news, of);
  if (FIGURES.some((of) => change(of) > 0 && !isAgain(seconds, nowMicros, news, of))) return news;
  if (!FIGURES.some((of) => change(of) < 0)) return all;
  const calm = seconds.sum(nowMicros, 2 * NEWS_SECONDS);
  const before = seconds.sum(nowMicros, NEWS_SECONDS, NEWS_SECONDS);
  return FIGURES.some((of) => changeFrom(news, before, of) > 0) ? all : calm;
}

type CountOf = (span: Span) => number;

/** By how much more or less there is in the one than in the other time, beyond chance; 0 if it may be that. */
function changeFrom(usually: Span, span: Span, countOf: CountOf): number {
  const usual = (countOf(usually) * span.spanMs) / usually.spanMs;
  const more = countOf(span) - usual;
  return Math.abs(more) > Math.max(NOT_CHANCE * Math.sqrt(usual), UNEVEN * usual) ? more : 0;
}

/** Whether there was as much before in the ten seconds, and a pause between. */
function isAgain(seconds: Ring, nowMicros: number, news: Span, countOf: CountOf): boolean {
  const rateOf = (span: Span): number => (span.spanMs > 0 ? countOf(span) / span.spanMs : 0);
  const each = Array.from({ length: NEWS_SECONDS }, (_, ago) => seconds.sum(nowMicros, 1, ago));
  const hasPause = each.some((one) => one.spanMs > 0 && rateOf(one) < rateOf(news) / 2);
  const before = BEFORE_SECONDS.map((ago) => seconds.sum(nowMicros, NEWS_SECONDS, ago));
  return hasPause && before.some((one) => one.spanMs > 0 && changeFrom(one, news, countOf) <= 0);
}

const degradedIn = ({ degraded1, degraded2, degraded3, degraded4 }: Span): number =>
  degraded1 + degraded2 + degraded3 + degraded4;

const FIGURES: readonly CountOf[] = [({ count }) => count, ({ denied }) => denied, degradedIn];

const areManyDenied = (some: Stretch): boolean =>
  some.of('denied') > MANY_DENIED * some.of('count');

const areDegraded = (some: Stretch): boolean => LEVELS.some((level) => some.of(level) > 0);
const LEVELS = ['degraded1', 'degraded2', 'degraded3', 'degraded4'] as const;

const STEP_SECONDS = 5;
/** Seldom requests are as many as often ones: so long without any ends nothing. */
const PAUSE_SECONDS = 60;

/**
 * For how long that has been so, in milliseconds: by the seconds, and beyond these by the minutes; of a node that merges since
 * a moment only these know. 0 if it is not so, and if it has been for longer than the minutes go back: then nobody knows.
 */
function lasting(
  { seconds, minutes }: Series,
  nowMicros: number,
  isSo: (some: Stretch) => boolean,
): number {
  let known = 0;
  for (let ago = 0; ago < seconds.length && ago < known + PAUSE_SECONDS; ago += STEP_SECONDS) {
    const some = seconds.stretch(nowMicros, STEP_SECONDS, ago);
    if (isSo(some)) known = ago + STEP_SECONDS;
    else if (some.of('count') > 0) return known * 1000;
  }
  const pause = seconds.stretch(nowMicros, PAUSE_SECONDS, known).slots;
  if (known === 0 || pause > PAUSE_SECONDS / 2) return known * 1000;
  return lastingMinutes(minutes, nowMicros, known, isSo);
}

/** The same of the minutes, after so many seconds. */
function lastingMinutes(
  minutes: Ring,
  nowMicros: number,
  seconds: number,
  isSo: (some: Stretch) => boolean,
): number {
  const now = minutes.slotAt(nowMicros);
  const first = minutes.slotAt(nowMicros - seconds * 1_000_000 - 1);
  let slot = first;
  while (slot > now - minutes.length && isSo(minutes.stretch(nowMicros, 1, now - slot - 1))) slot--;
  if (slot === now - minutes.length) return 0;
  const atMicros = (slot + 1) * minutes.sizeMs * 1000;
  return slot === first ? seconds * 1000 : Math.round((nowMicros - atMicros) / 1000);
}

/** Whether too little is known to say what is usual. */
export function learningOf({ minutes }: Series, nowMicros: number): LearningState | undefined {
  const known = minutes.sum(nowMicros, USUAL_MINUTES).slots;
  return known < NEEDED_MINUTES ? { minutes: known, needed: NEEDED_MINUTES } : undefined;
}

/** The details beside the status. */
export interface HealthDetails {
  /** `memory` where there is no shared store. */
  readonly store: 'up' | 'away' | 'memory';
  /** Requests are decided, by the store or without it. */
  readonly answering: boolean;
  /** Revision of the configuration that holds here. */
  readonly revision: number;
  /** Nodes that are not on the latest one; only on the node that knows. */
  readonly behind?: number;
  /** Apps that are decided without the store. */
  readonly offlineApps: readonly string[];
  /** Resources that do not get all of their requests. */
  readonly degraded: readonly string[];
  /** Alerts that fire, of those that this process looks at. */
  readonly firing: number;
}
