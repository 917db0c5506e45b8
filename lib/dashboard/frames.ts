import { type Clock } from '../common/clock.js';
import { type ConfigSnapshot, type RateLimitConfig } from '../config/rate-limit-config.js';
import { type DegradationStats } from '../degradation/core/degradation-core.js';
import { type RateLimiter, type RateLimiterStats } from '../limiter/rate-limiter.js';
import { alertCounts } from '../observability/alerts/alert-words.js';
import { type RateLimitMonitor } from '../observability/monitor.js';
import { libraryVersion } from '../stores/package-file.js';
import {
  leftOut,
  onLatest,
  type FleetNode,
  type FleetState,
  type MonitorState,
  type WatchedState,
} from '../observability/state.js';
import {
  isShort,
  limitedOf,
  type PolicyLimit,
  type ShownDenial,
} from '../observability/limited.js';
import { verdict } from '../observability/verdict.js';
import { type OverloadStats } from '../overload/events.js';
import { type TierCounts } from '../overload/line.js';
import { isNotClosed } from '../protection/breaker-state.js';
import { type Protection } from '../protection/protection.js';
import { changesNothing, changeText, newsOf, reachedBy } from './change-text.js';
import { changesBetween } from './changes.js';
import {
  type PageFrame,
  type ShownAction,
  type ShownChange,
  type ShownOverload,
  type ShownPolicy,
  type ShownResource,
} from './frame.js';
import { roomOf } from './room.js';
import { isRejoining, rejoiningVerdict, sharesOf, unseenBy } from './unseen.js';
import { Incidents, usualOf, type Usual } from './usual.js';
import { type FrameEvents } from './viewers.js';

/** The parts of the application that the page shows. */
export interface FramesDeps {
  readonly monitor: RateLimitMonitor;
  readonly limiter: RateLimiter;
  readonly config: RateLimitConfig;
  readonly protection: Pick<Protection, 'stats'>;
  /** Undefined as long as nothing degrades. */
  readonly degradation: () => DegradationStats | undefined;
  /** Undefined where no requests go through the line. */
  readonly overload: () => OverloadStats | undefined;
  readonly clock: Clock;
  readonly build: string;
  readonly canWrite: boolean;
  readonly actions: readonly ShownAction[];
  readonly viewers: () => number;
}

/** Frames within so long are one: a viewer that comes again and again costs nothing. */
const FRESH_MICROS = 900_000;
const SECONDS = 60;
const MOST_POLICIES = 200;
const MOST_RESOURCES = 200;
/** Revisions among which the one that a rollback went to is looked for. */
const LOOKED_BACK = 30;
/** The usual figures change by the minute; until they are known they are looked for more often. */
const USUAL_MICROS = 60_000_000;
const LOOK_AGAIN_MICROS = 10_000_000;

/** Makes the frame of a second, once for all who look. */
export class Frames {
  private made: { readonly frame: Promise<Frame>; readonly atMicros: number } | undefined;
  private last: Frame | undefined;
  private readonly hits: { readonly decisions: number; readonly local: number }[] = [];
  private tiers: TierReading | undefined;
  private change: ShownChange | undefined;
  private lookedFor = -1;
  private usual: { readonly found: Usual | null; readonly atMicros: number } | undefined;
  private readonly incidents = new Incidents();
  /** The fleet as a frame has seen it last. */
  private seen: FleetState | undefined;
  /** The fleet as it was before Redis went away, until its nodes are merged again. */
  private before: FleetState | undefined;
  private readonly version = libraryVersion();

  constructor(private readonly deps: FramesDeps) {}

  /** As events of a stream. */
  events(): Promise<FrameEvents> {
    return this.ofThisSecond();
  }

  /** As the viewers get it. */
  async latest(): Promise<PageFrame> {
    return (await this.ofThisSecond()).shown;
  }

  private ofThisSecond(): Promise<Frame> {
    const now = this.deps.clock.now();
    if (this.made !== undefined && now - this.made.atMicros < FRESH_MICROS) return this.made.frame;
    const frame = this.frame().then((shown) => (this.last = new Frame(shown, this.last)));
    this.made = { frame, atMicros: now };
    frame.catch(() => (this.made = undefined));
    return frame;
  }

  /** Made anew: each one counts what has come since the one before. */
  async frame(): Promise<PageFrame> {
    const { monitor, limiter, config, clock, build, canWrite, viewers, actions } = this.deps;
    const own = monitor.state();
    const isAway = own.store?.isUp === false;
    const nowMs = Math.round(clock.epochMs(clock.now()));
    const merged = await this.fleetBeside(own);
    const before = this.before ?? this.lastSeen();
    const isAlone = isAway || isRejoining(own, before, merged, nowMs);
    const unseen = isAlone ? unseenBy(own, before) : null;
    this.before = unseen === null ? undefined : before;
    const fleet = unseen === null ? merged : undefined;
    this.seen = fleet ?? this.seen;
    const state = fleet ?? own;
    const found = verdict(state);
    const stats = limiter.stats();
    const snapshot = config.current();
    const change = await this.lastChange(snapshot);
    const { revision } = snapshot;
    const reached = reachedBy(state, revision, fleet === undefined);
    return {
      ...{ build, version: this.version, seenFrom: own.nodeId, canWrite, viewers: viewers() },
      actions,
      nowMs,
      scope: fleet === undefined ? 'process' : 'fleet',
      storeKind: limiter.redis === undefined ? 'memory' : 'redis',
      storeTimeoutMs: limiter.redis?.timeoutMs ?? null,
      verdict: unseen === null || isAway ? found : rejoiningVerdict(found, unseen),
      aside: asideOf(state, revision, fleet !== undefined),
      ...{ reached, news: newsOf(change, state, reached, nowMs) },
      state: shown(state),
      isShort: isShort(state) && !isAway,
      nodes: fleet?.nodes ?? [alone(own)],
      unseen,
      leftOut: fleet === undefined ? '' : leftOut(fleet),
      inProcess: this.inProcess(stats),
      usual: await this.usualNow(isAway, state),
      limited: this.limitedIn(state),
      policies: policiesOf(limiter, snapshot, state),
      policyCount: limiter.policyNames().length,
      resources: this.resources(),
      overload: this.overload(),
      change,
      room: roomOf({
        ...{ quota: state.quota, isAway, isShort: isShort(state) },
        reservedRatio: snapshot.document.cluster?.reservedRatio,
      }),
      shares: isAway ? sharesOf(own.quota) : null,
    };
  }

  /** Those who are turned away, as a frame lists them. */
  async limited(): Promise<ShownDenial[]> {
    const own = this.deps.monitor.state();
    return this.limitedIn((await this.fleetBeside(own)) ?? own);
  }

  private limitedIn(state: WatchedState): ShownDenial[] {
    return limitedOf(state, (policy) => limitOf(this.deps.limiter, policy));
  }

  /** Alone a process knows itself best; and while Redis is away, what was merged before is no longer so. */
  private async fleetBeside({ store }: MonitorState): Promise<FleetState | undefined> {
    const merged = await this.deps.monitor.fleet();
    return merged?.isShared !== true || store?.isUp === false ? undefined : merged;
  }

  /** By a frame, or by the process itself where it has merged and nobody looked. */
  private lastSeen(): FleetState | undefined {
    const last = this.deps.monitor.lastFleet();
    return (last?.atMs ?? 0) > (this.seen?.atMs ?? 0) ? last : this.seen;
  }

  /** Of the last minute, as far as it was looked at. */
  private inProcess(stats: RateLimiterStats): number | null {
    let decisions = stats.quota?.decisions ?? 0;
    let local = stats.quota?.localHits ?? 0;
    for (const { bySource } of Object.values(stats.policies)) {
      const sum = ({ allowed, denied, shadowDenied }: (typeof bySource)['local']): number =>
        allowed + denied + shadowDenied;
      decisions += sum(bySource.local) + sum(bySource.store) + sum(bySource.fallback);
      local += sum(bySource.local) + sum(bySource.fallback);
    }
    this.hits.push({ decisions, local });
    if (this.hits.length > SECONDS) this.hits.shift();
    const first = this.hits[0]!;
    const since = this.hits.length === 1 ? { decisions: 0, local: 0 } : first;
    const more = decisions - since.decisions;
    return more > 0 ? (local - since.local) / more : null;
  }

  /** Read once a minute; while Redis is away it stays what it was. */
  private async usualNow(isAway: boolean, { alerts }: WatchedState): Promise<Usual | null> {
    const { monitor, clock } = this.deps;
    const now = clock.now();
    const incidents = this.incidents.with(alerts, clock.epochMs(now));
    const keptMicros = this.usual?.found ? USUAL_MICROS : LOOK_AGAIN_MICROS;
    const isOld = this.usual === undefined || now - this.usual.atMicros >= keptMicros;
    if (isOld && !isAway) {
      const past =
        (await monitor.fleetHistory('total', 'minutes')) ?? monitor.history('total', 'minutes');
      this.usual = { found: past === undefined ? null : usualOf(past, incidents), atMicros: now };
    }
    return this.usual?.found ?? null;
  }

  private resources(): ShownResource[] {
    const found = new Map<string, ShownResource>();
    for (const [resource, stats] of Object.entries(this.deps.protection.stats())) {
      const { inFlight, waiting, breaker } = stats;
      found.set(resource, {
        ...{ ...NOTHING_KNOWN, resource, inFlight, waiting, breakerMode: breaker?.mode ?? null },
      });
    }
    for (const recovery of this.deps.degradation()?.resources ?? []) {
      const { resource, cause, level, observing, sinceMs, stages } = recovery;
      found.set(resource, {
        ...(found.get(resource) ?? { ...NOTHING_KNOWN, resource }),
        ...{ cause: cause ?? null, level: level ?? null, observing, sinceMs },
        // Those that it has come to, and the last.
        stages: [...new Set([...stages.map(({ percent }) => percent), 100])],
      });
    }
    return [...found.values()].slice(0, MOST_RESOURCES);
  }

  private overload(): ShownOverload | null {
    const stats = this.deps.overload();
    if (stats === undefined) return null;
    const { standing, waiting, inFlight, turnMs, factor, load, byTier } = stats;
    const before = this.tiers;
    const now = this.deps.clock.now();
    const counts = new Map(Object.entries(byTier).map(([tier, one]) => [tier, { ...one }]));
    this.tiers = { counts, atMicros: now };
    const seconds = before === undefined ? 0 : (now - before.atMicros) / 1_000_000;
    const perSecond = (tier: string, of: (one: Readonly<TierCounts>) => number): number => {
      const [one, was] = [counts.get(tier), before?.counts.get(tier)];
      return one === undefined || was === undefined || seconds <= 0
        ? 0
        : (of(one) - of(was)) / seconds;
    };
    return {
      ...{ standing, waiting, inFlight, turnMs, factor, score: load?.score ?? null },
      tiers: Object.keys(byTier).map((tier) => ({
        tier,
        ran: perSecond(tier, ({ ran }) => ran),
        waited: perSecond(tier, ({ waited }) => waited),
        refused: perSecond(tier, ({ full, late }) => full + late),
      })),
    };
  }

  /** Asks the history once for each revision; a store that is away is asked again. */
  private async lastChange(snapshot: ConfigSnapshot): Promise<ShownChange | null> {
    const { revision, profile, staged } = snapshot;
    const bare = { revision, profile, staged: staged?.length ?? 0 };
    if (this.change?.revision === revision && this.lookedFor === revision) {
      return { ...this.change, ...bare };
    }
    this.lookedFor = revision;
    this.change = { ...bare, by: null, atMs: null, told: null };
    if (revision === 0) return this.change;
    try {
      const past = await this.deps.config.history(LOOKED_BACK);
      const found = past.find((one) => one.revision === revision);
      if (found !== undefined) {
        const { by, atMs } = found;
        const told = changeText(found, past);
        this.change = { ...this.change, by, atMs, told, isEmpty: changesNothing(found) };
      }
    } catch {
      this.lookedFor = -1;
    }
    return this.change;
  }
}

interface TierReading {
  readonly counts: ReadonlyMap<string, Readonly<TierCounts>>;
  readonly atMicros: number;
}

const NOTHING_KNOWN: Omit<ShownResource, 'resource'> = {
  cause: null,
  level: null,
  observing: false,
  sinceMs: null,
  breakerMode: null,
  inFlight: 0,
  waiting: 0,
  stages: [],
};

function asideOf(state: WatchedState, revision: number, isFleet: boolean): string {
  const { store, alerts, config, nodeCount } = state;
  if (store === undefined) return 'The store is in memory: this is what this process alone sees.';
  if (!isFleet) return 'No other process has told its figures yet: this is this process alone.';
  const counts = alertCounts(alerts);
  const told = counts === '' ? 'no alert fires' : `alerts: ${counts}`;
  const behind = config?.behind ?? 0;
  const latest =
    nodeCount > 1 && (config?.revision ?? 0) < revision
      ? `the others have not told yet whether they have revision ${revision}`
      : behind === 0
        ? `every node ${onLatest(state).silent === 0 ? '' : 'that speaks '}has the latest configuration`
        : `${behind} of ${nodeCount} nodes ${behind === 1 ? 'has' : 'have'} an earlier configuration`;
  return `Redis ${store.isUp ? 'answers' : 'is away'}; ${told}; ${latest}.`;
}

/** Without what only programs need: of its share of an overload each app says itself what it may have. */
function shown(state: FleetState | MonitorState): PageFrame['state'] {
  const { nodes: _nodes, nodeId: _nodeId, ...rest } = state as FleetState & MonitorState;
  return { ...rest, marks: rest.marks.filter(({ kind }) => kind !== 'quota') };
}

function alone({ nodeId, series, config, quota, store, resources }: MonitorState): FleetNode {
  const total = series.find(({ name }) => name === 'total');
  const open = resources.filter(({ breaker }) => isNotClosed(breaker));
  return {
    node: nodeId,
    rate: total?.rate ?? 0,
    denied: total?.denied ?? 0,
    revision: config?.revision ?? 0,
    storeIsUp: store?.isUp ?? true,
    isSilent: false,
    apps: (quota?.apps ?? []).map(({ app, used }) => ({ app, used })),
    ...(open.length > 0 && { open: open.map(({ resource }) => resource) }),
  };
}

function limitOf(limiter: RateLimiter, name: string): PolicyLimit | undefined {
  const policy = limiter.policy(name);
  return policy && { ...policy.base, failureMode: policy.failureMode };
}

/**
 * Those that are asked most, and before others those that were asked at all. As the document has them: an order that is
 * new each second would be a change of all of them.
 */
function policiesOf(
  limiter: RateLimiter,
  { document }: ConfigSnapshot,
  { series }: WatchedState,
): ShownPolicy[] {
  const rates = new Map(series.map(({ name, rate }) => [name, rate]));
  const rateOf = (policy: string): number => rates.get(`policy:${policy}`) ?? NOT_WATCHED;
  const names = limiter.policyNames();
  const busiest = [...names].sort((one, other) => rateOf(other) - rateOf(one));
  const chosen = new Set(busiest.slice(0, MOST_POLICIES));
  return names.flatMap((name) => {
    const info = chosen.has(name) ? limiter.policy(name) : undefined;
    if (info === undefined) return [];
    const { key, shadow, scope } = document.policies?.[name] ?? {};
    const { capacity, windowMs } = info.base;
    const [isGlobal, isNodes] = [key === 'global', scope === 'node'];
    return [{ name, capacity, windowMs, shadow: shadow === true, isGlobal, isNodes }];
  });
}

/** Below any rate. */
const NOT_WATCHED = -1;

/** Each event is made when the first viewer needs it, and is the same for all. */
class Frame implements FrameEvents {
  readonly sequence: number;
  /** A copy: what the frame was made of may go on changing. */
  readonly shown: PageFrame;
  private readonly before: unknown;
  private stateEvent: Buffer | undefined;
  private tickEvent: Buffer | undefined;

  constructor(shown: PageFrame, before: Frame | undefined) {
    this.sequence = (before?.sequence ?? 0) + 1;
    this.shown = rounded(shown) as PageFrame;
    this.before = before?.shown;
  }

  state(): Buffer {
    return (this.stateEvent ??= this.event('state', this.shown));
  }

  tick(): Buffer {
    return (this.tickEvent ??= this.event('tick', changesBetween(this.before, this.shown) ?? {}));
  }

  private event(name: string, data: unknown): Buffer {
    return Buffer.from(`id: ${this.sequence}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}

/** As it is in JSON, with numbers of four digits: more than anybody reads, and each would be a change. */
function rounded(value: unknown): unknown {
  if (typeof value === 'number') {
    if (Number.isInteger(value)) return value;
    return Number.isFinite(value) ? Number(value.toPrecision(4)) : null;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(rounded);
  const copy: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value)) {
    if (part !== undefined) copy[name] = rounded(part);
  }
  return copy;
}
