import { LogLinear } from '../../common/histogram.js';
import { type DecisionSource } from '../../limiter/decision.js';
import { type FailureMode } from '../../limiter/policy-options.js';
import {
  BREAKERS,
  MODES,
  PHASES,
  type NodeCondition,
  type NodeResource,
} from '../node-condition.js';
import { noCounts, type Counts } from '../series.js';
import { NAMED_KINDS, OTHER, type NamedKind } from '../series-table.js';
import { type AppDenials } from '../sources.js';
import { type ShownHotValue, type ShownKey } from '../state.js';

/** Other versions of the library may write other figures; they are not merged. */
const VERSION = 1;
const MOST_BYTES = 8192;
/** A text that is longer is not of ours, and is not even looked at. */
const MOST_READ = 4 * MOST_BYTES;
const MOST_STATE_BYTES = 2048;
const LONGEST_NAME = 128;
const MOST_SERIES = 400;

/** Figures of one series on one node, since its start. */
export interface NodeSeries {
  readonly kind: NamedKind | 'total' | 'store';
  /** Empty for `total` and `store`. */
  readonly name: string;
  readonly counts: Counts;
  readonly times: LogLinear | undefined;
}

/** The counts of a node since its start, for the others: so a snapshot that was lost loses nothing. */
export interface NodeSnapshot extends NodeCondition {
  readonly node: string;
  /** Another one means that the process was started anew, and counts from 0. */
  readonly incarnation: string;
  /** When it had counted that, in milliseconds of its own clock: compared only with itself. Earlier versions do not say. */
  readonly atMs: number | undefined;
  readonly series: readonly NodeSeries[];
  readonly deniedKeys: readonly ShownKey[];
  /** Empty from versions that did not tell. */
  readonly hotValues: readonly ShownHotValue[];
}

/** Why a text is no snapshot. */
export type Unreadable = 'damaged' | 'other version';

const COUNTS = Object.keys(noCounts()) as (keyof Counts)[];
const SOURCES: readonly DecisionSource[] = ['local', 'store', 'fallback'];
const FAILURE_MODES: readonly FailureMode[] = ['local', 'open', 'closed'];
const KINDS = ['total', 'store', ...NAMED_KINDS] as const;

type WireSeries = [kind: number, name: string, counts: number[], times?: number[], sum?: number];

/** As JSON of at most 8 kB: histograms of the quietest go first, then their names. */
export function encodeSnapshot(snapshot: NodeSnapshot): string {
  const bounded = withFewStates(snapshot);
  let series = [...snapshot.series].sort((a, b) => b.counts.count - a.counts.count);
  let text = write({ ...bounded, series });
  while (Buffer.byteLength(text) > MOST_BYTES && series.length > 2) {
    series = smaller(series);
    text = write({ ...bounded, series });
  }
  if (Buffer.byteLength(text) <= MOST_BYTES) return text;
  // Keys as long as names may be, in letters of three bytes.
  return write({ ...bounded, series, deniedKeys: [], hotValues: [] });
}

/** Keeps resources in trouble first: the others are well, and need not be told. */
function withFewStates(snapshot: NodeSnapshot): NodeSnapshot {
  const trouble = ({ breaker, phase }: NodeResource): number =>
    Math.min(rankIn(BREAKERS, breaker), rankIn(PHASES, phase));
  let resources = [...snapshot.resources].sort((one, other) => trouble(one) - trouble(other));
  let modes = [...snapshot.modes].sort(
    ([, one], [, other]) => MODES.indexOf(one) - MODES.indexOf(other),
  );
  let denials = [...snapshot.denials].sort((one, other) => other.denied - one.denied);
  const bytes = (): number =>
    Buffer.byteLength(JSON.stringify([resources.map(wireOf), modes, denials.map(wireOfDenials)]));
  while (bytes() > MOST_STATE_BYTES) {
    denials = denials.slice(0, Math.floor(denials.length / 2));
    resources = resources.slice(0, Math.floor(resources.length / 2));
    modes = modes.slice(0, Math.floor(modes.length / 2));
  }
  return { ...snapshot, resources, modes, denials };
}

const rankIn = <T>(order: readonly T[], one: T | undefined): number =>
  one === undefined ? order.length : order.indexOf(one);

/** Shortens the last quarter: drops its times if there are any, else makes one of all series of a kind. */
function smaller(series: readonly NodeSeries[]): NodeSeries[] {
  const kept = Math.max(2, Math.floor(series.length * 0.75));
  const [first, last] = [series.slice(0, kept), series.slice(kept)];
  if (last.some(({ times, kind }) => times !== undefined && kind !== 'total')) {
    return [...first, ...last.map((one) => ({ ...one, times: undefined }))];
  }
  const all = [...first];
  for (const { kind, name, counts } of last) {
    const other = kind === 'total' || kind === 'store' ? name : OTHER;
    const at = all.findIndex((one) => one.kind === kind && one.name === other);
    const known = all[at]?.counts ?? noCounts();
    const sum = noCounts();
    for (const count of COUNTS) sum[count] = known[count] + counts[count];
    const joined = { kind, name: other, counts: sum, times: undefined };
    if (at < 0) all.push(joined);
    else all[at] = joined;
  }
  return all;
}

type WireResource = [name: string, breaker: number, phase: number, percent: number, falls: number];

/** -1 stands for what is not there. */
const wireOf = ({ resource, breaker, phase, percent, falls }: NodeResource): WireResource => [
  ...([cut(resource), BREAKERS.indexOf(breaker!), PHASES.indexOf(phase!)] as const),
  ...([percent ?? -1, falls] as const),
];

const wireOfDenials = ({ app, denied, byCluster }: AppDenials): [string, number, number] => [
  ...([cut(app), denied, byCluster] as const),
];

function write(snapshot: NodeSnapshot): string {
  const { node, incarnation, atMs, revision, storeIsUp, overloaded, line } = snapshot;
  const wire = snapshot.series.map(({ kind, name, counts, times }): WireSeries => {
    const figures = COUNTS.map((count) => counts[count]);
    const place = KINDS.indexOf(kind);
    if (times === undefined) return [place, cut(name), figures];
    return [place, cut(name), figures, sparse(times), times.sumMicros];
  });
  return JSON.stringify({
    v: VERSION,
    ...{ node, inc: incarnation, rev: revision, up: storeIsUp ? 1 : 0 },
    ...(atMs !== undefined && { at: Math.round(atMs) }),
    ...(overloaded !== undefined && { over: overloaded ? 1 : 0 }),
    ...(line !== undefined && { line: [line.standing ? 1 : 0, line.waiting] }),
    modes: snapshot.modes.map(([app, mode]) => [cut(app), MODES.indexOf(mode)]),
    res: snapshot.resources.map(wireOf),
    ...(snapshot.denials.length > 0 && { den: snapshot.denials.map(wireOfDenials) }),
    series: wire,
    keys: snapshot.deniedKeys.map(wireOfKey),
    ...(snapshot.hotValues.length > 0 && {
      hot: snapshot.hotValues.map((one) => [cut(one.policy), cut(one.key), one.perPeriod]),
    }),
  });
}

/** Earlier versions read the first three, and write no more. */
function wireOfKey({ policy, key, denied, source, failureMode }: ShownKey): (string | number)[] {
  const wire = [cut(policy), cut(key), denied];
  if (source === undefined) return wire;
  wire.push(SOURCES.indexOf(source));
  return failureMode === undefined ? wire : [...wire, FAILURE_MODES.indexOf(failureMode)];
}

/** Cell, count, cell, count: most cells are empty. */
function sparse(times: LogLinear): number[] {
  const pairs: number[] = [];
  times.cells.forEach((count, cell) => {
    if (count > 0) pairs.push(cell, count);
  });
  return pairs;
}

/** Checks all of it: anybody who may write to Redis can have put it there. */
export function decodeSnapshot(node: string, text: string): NodeSnapshot | Unreadable {
  if (text.length > MOST_READ) return 'damaged';
  try {
    const wire = JSON.parse(text) as Record<string, unknown>;
    if (typeof wire?.v !== 'number') return 'damaged';
    if (wire.v !== VERSION) return 'other version';
    if (wire.node !== node || typeof wire.inc !== 'string' || !isCount(wire.rev)) return 'damaged';
    if (!Array.isArray(wire.series) || wire.series.length > MOST_SERIES) return 'damaged';
    if (!Array.isArray(wire.keys) || wire.keys.length > MOST_SERIES) return 'damaged';
    return {
      node,
      incarnation: wire.inc,
      atMs: isCount(wire.at) ? wire.at : undefined,
      revision: wire.rev,
      storeIsUp: wire.up === 1,
      overloaded: wire.over === undefined ? undefined : wire.over === 1,
      line: wire.line === undefined ? undefined : lineOf(wire.line),
      modes: listOf(wire.modes).map(modeOf),
      resources: listOf(wire.res).map(resourceOf),
      denials: listOf(wire.den ?? []).map(denialsOf),
      series: wire.series.map(seriesOf),
      deniedKeys: wire.keys.map(deniedKeyOf),
      hotValues: listOf(wire.hot ?? [])
        .slice(0, MOST_SERIES)
        .map(keyOf)
        .map(([policy, key, perPeriod]) => ({ policy, key, perPeriod })),
    };
  } catch {
    return 'damaged';
  }
}

function seriesOf(wire: unknown): NodeSeries {
  const [place, name, figures, times, sum] = listOf(wire);
  const kind = KINDS[place as number];
  const values = listOf(figures);
  if (kind === undefined || !isName(name) || values.length !== COUNTS.length)
    throw new Error('series');
  if (!values.every(isCount)) throw new Error('counts');
  const counts = noCounts();
  for (let i = 0; i < COUNTS.length; i++) counts[COUNTS[i]!] = values[i] as number;
  return {
    kind,
    name,
    counts,
    times: times === undefined ? undefined : timesOf(listOf(times), sum),
  };
}

function lineOf(wire: unknown): NonNullable<NodeSnapshot['line']> {
  const [standing, waiting] = listOf(wire);
  if (!isCount(waiting)) throw new Error('line');
  return { standing: standing === 1, waiting };
}

function modeOf(wire: unknown): NodeSnapshot['modes'][number] {
  const [app, place] = listOf(wire);
  const mode = MODES[place as number];
  if (!isName(app) || mode === undefined) throw new Error('mode');
  return [app, mode];
}

function denialsOf(wire: unknown): AppDenials {
  const [app, denied, byCluster] = listOf(wire);
  if (!isName(app) || !isCount(denied) || !isCount(byCluster)) throw new Error('denials');
  return { app, denied, byCluster: Math.min(byCluster, denied) };
}

function resourceOf(wire: unknown): NodeResource {
  const [resource, breaker, phase, percent, falls] = listOf(wire);
  if (!isName(resource) || typeof percent !== 'number' || !isCount(falls)) {
    throw new Error('resource');
  }
  return {
    ...{ resource, falls, percent: percent < 0 ? undefined : Math.min(percent, 100) },
    ...{ breaker: BREAKERS[breaker as number], phase: PHASES[phase as number] },
  };
}

function timesOf(pairs: readonly unknown[], sum: unknown): LogLinear {
  const times = new LogLinear();
  if (!isCount(sum) || !pairs.every(isCount)) throw new Error('times');
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const [cell, count] = [pairs[index] as number, pairs[index + 1] as number];
    if (!Number.isInteger(cell) || cell >= times.cells.length) throw new Error('cell');
    times.addTo(cell, count);
  }
  times.sumMicros = sum;
  return times;
}

function keyOf(wire: unknown): readonly [policy: string, key: string, count: number] {
  const [policy, key, count] = listOf(wire);
  if (!isName(policy) || !isName(key) || !isCount(count)) throw new Error('key');
  return [policy, key, count];
}

function deniedKeyOf(wire: unknown): ShownKey {
  const [policy, key, denied] = keyOf(wire);
  const [, , , source, mode] = listOf(wire);
  const failureMode = FAILURE_MODES[mode as number];
  return {
    ...{ policy, key, denied, source: SOURCES[source as number] },
    ...(failureMode !== undefined && { failureMode }),
  };
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('list');
  return value as readonly unknown[];
}

const cut = (name: string): string => name.slice(0, LONGEST_NAME);

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LONGEST_NAME;

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
