import { LogLinear } from '../../common/histogram.js';
import { noCounts, type Counts } from '../series.js';
import { NAMED_KINDS, OTHER, type NamedKind } from '../series-table.js';
import { type ShownKey } from '../state.js';

/** Other versions of the library may write other figures; they are not merged. */
const VERSION = 1;
const MOST_BYTES = 8192;
/** A text that is longer is not of ours, and is not even looked at. */
const MOST_READ = 4 * MOST_BYTES;
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

/** What a node tells the others: counts since its start, so that a snapshot that was lost loses nothing. */
export interface NodeSnapshot {
  readonly node: string;
  /** Another one means that the process was started anew, and counts from 0. */
  readonly incarnation: string;
  readonly revision: number;
  readonly storeIsUp: boolean;
  readonly series: readonly NodeSeries[];
  readonly deniedKeys: readonly ShownKey[];
}

/** Why a text is no snapshot. */
export type Unreadable = 'damaged' | 'other version';

const COUNTS = Object.keys(noCounts()) as (keyof Counts)[];
const KINDS = ['total', 'store', ...NAMED_KINDS] as const;

type WireSeries = [kind: number, name: string, counts: number[], times?: number[], sum?: number];

/** As JSON of at most 8 kB: histograms of the quietest go first, then their names. */
export function encodeSnapshot(snapshot: NodeSnapshot): string {
  let series = [...snapshot.series].sort((a, b) => b.counts.count - a.counts.count);
  let text = write({ ...snapshot, series });
  while (Buffer.byteLength(text) > MOST_BYTES && series.length > 2) {
    series = smaller(series);
    text = write({ ...snapshot, series });
  }
  return text;
}

/** Of the last quarter: without times if any has some, else all of a kind as one. */
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

function write({
  node,
  incarnation,
  revision,
  storeIsUp,
  series,
  deniedKeys,
}: NodeSnapshot): string {
  const wire = series.map(({ kind, name, counts, times }): WireSeries => {
    const figures = COUNTS.map((count) => counts[count]);
    const place = KINDS.indexOf(kind);
    if (times === undefined) return [place, name, figures];
    return [place, name, figures, sparse(times), times.sumMicros];
  });
  const keys = deniedKeys.map(({ policy, key, denied }) => [policy, key, denied]);
  const up = storeIsUp ? 1 : 0;
  return JSON.stringify({
    v: VERSION,
    node,
    inc: incarnation,
    rev: revision,
    up,
    series: wire,
    keys,
  });
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
      revision: wire.rev,
      storeIsUp: wire.up === 1,
      series: wire.series.map(seriesOf),
      deniedKeys: wire.keys.map(keyOf),
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
  const pairs = COUNTS.map((count, index) => [count, values[index]]);
  const counts = Object.fromEntries(pairs) as unknown as Counts;
  return {
    kind,
    name,
    counts,
    times: times === undefined ? undefined : timesOf(listOf(times), sum),
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

function keyOf(wire: unknown): ShownKey {
  const [policy, key, denied] = listOf(wire);
  if (!isName(policy) || !isName(key) || !isCount(denied)) throw new Error('key');
  return { policy, key, denied };
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('list');
  return value as readonly unknown[];
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LONGEST_NAME;

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
