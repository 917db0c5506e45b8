import { LogLinear } from '../../common/histogram.js';
import { isNotClosed } from '../../protection/breaker-state.js';
import { noCounts, type Counts } from '../series.js';
import { addTo, Reading, SeriesTable, type SeriesRow } from '../series-table.js';
import { joinConditions, type JoinedCondition, type NodeCondition } from '../node-condition.js';
import { type FleetNode, type ShownHotValue, type ShownKey } from '../state.js';
import { type NodeSeries, type NodeSnapshot } from './snapshot.js';

interface KnownNode {
  incarnation: string;
  /** Instant of the snapshot, by the node's own clock. */
  atMs: number | undefined;
  /** Counts by kind and name. */
  counts: Map<string, Counts>;
  times: Map<string, LogLinear>;
  /** What it has counted in so long, when it was last heard of; until it is heard of again it counts as much. */
  lately: Lately | undefined;
  /** When it was seen first, and when it was seen to have counted more than before. */
  firstAtMicros: number;
  changedAtMicros: number;
  shown: FleetNode;
  condition: NodeCondition;
  deniedKeys: readonly ShownKey[];
  hotValues: readonly ShownHotValue[];
  silentSinceMicros: number | undefined;
}

/** By kind and name; what has counted nothing is not there. */
interface Lately {
  readonly more: ReadonlyMap<string, Counts>;
  readonly seconds: number;
  readonly atMicros: number;
}

const COUNTS = Object.keys(noCounts()) as (keyof Counts)[];
/** A node that is silent for longer was taken away. */
const FORGOTTEN_MICROS = 600_000_000;
/** A node may write so much later than its period says. */
const LATE_MICROS = 500_000;
/** While tokens are scarce now this node gets some, now another: only over a few seconds do they have what is theirs. */
const LEASES_SECONDS = 5;
/** Per second; an app that has used none of late, and before that so few, is not shown on a node. */
const FEWEST_TOKENS = 0.5;
const SHOWN_KEYS = 10;
const idOf = ({ kind, name }: NodeSeries): string => `${kind}:${name}`;
/** No process has this one. */
const NEVER_HEARD = '';

/** A snapshot of a node that is known. */
interface Heard {
  readonly before: KnownNode;
  readonly next: KnownNode;
  readonly more: ReadonlyMap<string, Counts>;
  readonly isAnew: boolean;
  readonly nowMicros: number;
}

/**
 * Adds the figures of all nodes up. A rate is what a node has counted more than when it last had, by its own clock or, after
 * a start, by that of the process that looks: clocks of two nodes are never compared, and nodes write less often than it may
 * look. A node that was started anew counts from 0; of one that is seen for the first time, only what comes from now on counts.
 *
 * Minutes and hours have the counts, of which none is lost. Seconds have the rates of all nodes: what one of them has
 * counted in five seconds may come in a look at one.
 */
export class FleetMerge {
  readonly table: SeriesTable;
  private readonly reading = new Reading();
  private readonly known = new Map<string, KnownNode>();
  private readonly moreTimes = new LogLinear();
  /** How often each resource fell to degraded since this process merges, where it has; by node and resource. */
  readonly falls = new Map<string, readonly [resource: string, count: number, node: string]>();
  /** Snapshots that were none, and those of other versions, at the last look. */
  damaged = 0;
  otherVersions = 0;

  /** Every node writes within so long. One that has counted nothing new for longer has nothing to count. */
  private writtenMicros = 5_500_000;

  constructor(maxSeries: number) {
    this.table = new SeriesTable(maxSeries, 'looks');
  }

  /** A look begins, at nodes that write at least once in so long. */
  begin(periodMs: number): void {
    this.writtenMicros = periodMs * 1000 + LATE_MICROS;
    this.damaged = 0;
    this.otherVersions = 0;
    this.reading.stopRates();
  }

  add(snapshot: NodeSnapshot, nowMicros: number): void {
    const { node, incarnation, atMs, revision, storeIsUp, deniedKeys, hotValues } = snapshot;
    const open = openIn(snapshot);
    const found = this.known.get(node);
    const before = found?.incarnation === NEVER_HEARD ? undefined : found;
    const isAnew = before !== undefined && before.incarnation !== incarnation;
    const next: KnownNode = {
      ...{
        incarnation,
        atMs,
        counts: new Map(),
        times: new Map(),
        lately: undefined,
        firstAtMicros: before?.firstAtMicros ?? nowMicros,
        changedAtMicros: nowMicros,
        deniedKeys,
        hotValues,
      },
      shown: {
        ...{ node, rate: 0, denied: 0, revision, storeIsUp, isSilent: false },
        ...(open.length > 0 && { open }),
      },
      condition: snapshot,
      silentSinceMicros: undefined,
    };
    const more = new Map<string, Counts>();
    for (const series of snapshot.series) {
      const id = idOf(series);
      next.counts.set(id, series.counts);
      if (series.times !== undefined) next.times.set(id, series.times);
      if (before === undefined) continue;
      const own = this.addSeries(series, isAnew ? undefined : before, id);
      if (COUNTS.some((count) => own[count] > 0)) more.set(id, own);
    }
    this.known.set(node, next);
    if (before === undefined) return;
    if (!isAnew && more.size === 0) next.changedAtMicros = before.changedAtMicros;
    const lately = this.latelyOf({ before, next, more, isAnew, nowMicros });
    next.lately = lately;
    if (lately !== undefined) this.addRates(snapshot, lately);
    const { rate, denied, apps } =
      lately === before.lately ? before.shown : ratesOf(lately, before);
    next.shown = { ...next.shown, rate, denied, ...(apps && { apps }) };
    this.addFalls(snapshot, isAnew ? undefined : before);
  }

  /** As long as it has not written anew, a node goes on as it did: nodes write less often than it may look, and not in step. */
  private latelyOf({ before, next, more, isAnew, nowMicros }: Heard): Lately | undefined {
    const own = isAnew ? undefined : ownSeconds(before.atMs, next.atMs);
    const isAsBefore =
      !isAnew &&
      (before.atMs === undefined || next.atMs === undefined
        ? more.size === 0
        : next.atMs === before.atMs);
    if (isAsBefore) {
      const { lately } = before;
      const isOld = lately !== undefined && nowMicros - lately.atMicros > this.writtenMicros;
      return isOld ? undefined : lately;
    }
    const seen = Math.min(nowMicros - before.changedAtMicros, this.writtenMicros) / 1_000_000;
    const seconds = own ?? seen;
    return seconds > 0 ? { more, seconds, atMicros: nowMicros } : undefined;
  }

  /** Adds the rates of a node to those of the fleet. */
  private addRates({ series: all }: NodeSnapshot, { more, seconds }: Lately): void {
    for (const series of all) {
      const own = more.get(idOf(series));
      if (own !== undefined) addTo(this.rowOf(series).perSecond!, own, 1 / seconds);
    }
  }

  private rowOf({ kind, name }: NodeSeries): SeriesRow {
    const row =
      kind === 'total' || kind === 'store' ? this.reading[kind] : this.reading.of(kind, name);
    row.perSecond ??= noCounts();
    return row;
  }

  /** The node has written nothing. True if it has been silent for so long that it is forgotten. */
  missed(node: string, nowMicros: number): boolean {
    const known = this.known.get(node) ?? this.neverHeard(node, nowMicros);
    known.silentSinceMicros ??= nowMicros;
    const { open: _, ...shown } = known.shown;
    known.shown = { ...shown, rate: 0, denied: 0, isSilent: true, apps: [] };
    known.deniedKeys = [];
    known.hotValues = [];
    return nowMicros - known.silentSinceMicros > FORGOTTEN_MICROS;
  }

  /** A node that is on the board was heard of by whoever merged before. */
  private neverHeard(node: string, nowMicros: number): KnownNode {
    const condition: NodeCondition = {
      ...{ revision: 0, storeIsUp: true, overloaded: undefined, line: undefined },
      ...{ modes: [], resources: [], denials: [] },
    };
    const known: KnownNode = {
      ...{
        incarnation: NEVER_HEARD,
        atMs: undefined,
        counts: new Map(),
        times: new Map(),
        lately: undefined,
        firstAtMicros: nowMicros,
        changedAtMicros: nowMicros,
      },
      shown: { node, rate: 0, denied: 0, revision: 0, storeIsUp: true, isSilent: true },
      ...{ condition, deniedKeys: [], hotValues: [], silentSinceMicros: nowMicros },
    };
    this.known.set(node, known);
    return known;
  }

  /** Nodes that are not on the board any more have said goodbye. */
  keepOnly(nodes: ReadonlySet<string>): void {
    for (const node of this.known.keys()) if (!nodes.has(node)) this.known.delete(node);
    for (const [id, [, , node]] of this.falls) if (!nodes.has(node)) this.falls.delete(id);
  }

  /**
   * Whether every node that speaks was seen twice, or has counted nothing for as long as it takes to write. What all wrote
   * is gone after a long outage: then a node speaks that has only not written yet.
   */
  hasRates(nowMicros: number): boolean {
    return [...this.known.values()].every((one) => {
      const { shown, firstAtMicros, changedAtMicros, incarnation } = one;
      const isOld = nowMicros - firstAtMicros > this.writtenMicros;
      const isGone = shown.isSilent && incarnation !== NEVER_HEARD;
      return isGone || changedAtMicros > firstAtMicros || isOld;
    });
  }

  /** The figures of this look are of the time before the instant, since the look before. */
  end(atMicros: number, spanMs: number): void {
    this.table.read(atMicros, spanMs, this.reading);
  }

  nodes(): FleetNode[] {
    return Array.from(this.known.values(), ({ shown }) => shown);
  }

  /** The condition of all nodes that speak, together. */
  condition(): JoinedCondition {
    const speaking = [...this.known.values()].filter(({ shown }) => !shown.isSilent);
    return joinConditions(speaking.map(({ condition }) => condition));
  }

  deniedKeys(): ShownKey[] {
    const all = [...this.known.values()].flatMap(({ deniedKeys }) => deniedKeys);
    return mostOf(all, ({ denied }) => denied).map(([one, denied]) => ({ ...one, denied }));
  }

  hotValues(): ShownHotValue[] {
    const all = [...this.known.values()].flatMap(({ hotValues }) => hotValues);
    return mostOf(all, ({ perPeriod }) => perPeriod).map(([one, sum]) => {
      return { ...one, perPeriod: sum };
    });
  }

  /** A change before a node was seen for the first time has no instant. */
  private addFalls({ node, resources }: NodeSnapshot, before: KnownNode | undefined): void {
    for (const { resource, falls } of resources) {
      const own = before?.condition.resources.find((one) => one.resource === resource);
      const more = falls - (own?.falls ?? 0);
      if (more <= 0) continue;
      const id = `${node} ${resource}`;
      this.falls.set(id, [resource, (this.falls.get(id)?.[1] ?? 0) + more, node]);
    }
  }

  /** Adds what is more than before to the fleet's counts, and gives it. */
  private addSeries(series: NodeSeries, before: KnownNode | undefined, id: string): Counts {
    const { counts, times } = series;
    const row = this.rowOf(series);
    const known = before?.counts.get(id) ?? noCounts();
    const more = noCounts();
    for (const count of COUNTS) {
      // Figures that go back within one incarnation are not right; they count from here on.
      more[count] = Math.max(0, counts[count] - known[count]);
      row[count] += more[count];
    }
    if (times !== undefined) {
      // This snapshot replaces the node's former one, so the times of that may be written over.
      this.moreTimes.takeDifference(times, before?.times.get(id) ?? new LogLinear());
      (row.times ??= new LogLinear()).merge(this.moreTimes);
    }
    return more;
  }
}

/** The figures of a node beside the others. */
function ratesOf(
  lately: Lately | undefined,
  { shown }: KnownNode,
): Pick<FleetNode, 'rate' | 'denied' | 'apps'> {
  if (lately === undefined) return { rate: 0, denied: 0 };
  const { more, seconds } = lately;
  const part = Math.min(1, seconds / LEASES_SECONDS);
  const before = new Map(shown.apps?.map(({ app, used }) => [app, used]));
  const served = [...more].flatMap(([id, { used }]) =>
    id.startsWith(APP) && used > 0 ? id.slice(APP.length) : [],
  );
  const apps = [...new Set([...before.keys(), ...served])]
    .map((app) => {
      const now = (more.get(APP + app)?.used ?? 0) / seconds;
      const known = before.get(app) ?? now;
      return { app, now, used: known + (now - known) * part };
    })
    .filter(({ now, used }) => now > 0 || used >= FEWEST_TOKENS)
    .map(({ app, used }) => ({ app, used }));
  const { count, denied } = more.get(TOTAL) ?? noCounts();
  const rates = { rate: count / seconds, denied: denied / seconds };
  return apps.length === 0 ? rates : { ...rates, apps: busiest(apps) };
}

const APP = 'app:';
const TOTAL = 'total:';

/** The keys with the largest sums of a count over all nodes; the rest is of the node that has the most of it. */
function mostOf<T extends { readonly policy: string; readonly key: string }>(
  all: readonly T[],
  countOf: (one: T) => number,
): [one: T, sum: number][] {
  const sums = new Map<string, [T, number]>();
  for (const one of all) {
    const id = `${one.policy}:${one.key}`;
    const [known, sum] = sums.get(id) ?? [one, 0];
    sums.set(id, [countOf(one) > countOf(known) ? one : known, sum + countOf(one)]);
  }
  return [...sums.values()].sort(([, a], [, b]) => b - a).slice(0, SHOWN_KEYS);
}

/** The span of a node's counts by its own clock: a busy node writes late, and a busy leader reads late. */
function ownSeconds(before: number | undefined, now: number | undefined): number | undefined {
  return before !== undefined && now !== undefined && now > before
    ? (now - before) / 1000
    : undefined;
}

const MOST_OPEN = 8;

const openIn = ({ resources }: NodeCondition): string[] =>
  resources
    .flatMap(({ resource, breaker }) => (isNotClosed(breaker) ? [resource] : []))
    .slice(0, MOST_OPEN);

const MOST_APPS = 12;

const busiest = (apps: NonNullable<FleetNode['apps']>): NonNullable<FleetNode['apps']> =>
  [...apps].sort((one, other) => other.used - one.used).slice(0, MOST_APPS);
