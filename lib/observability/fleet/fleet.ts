import { randomBytes } from 'node:crypto';
import { type Clock } from '../../common/clock.js';
import { spread } from '../../common/ids.js';
import { type BoardStore } from '../../stores/board-store.js';
import { noFigures, type Figures, type Ring } from '../rings.js';
import { type Series } from '../series.js';
import { stateOf, type FleetState } from '../state.js';
import { FleetMerge } from './merge.js';
import { decodeSnapshot, encodeSnapshot, type NodeSnapshot } from './snapshot.js';

const PERIOD_MS = 5000;
/** Watched, each node writes once a second; of many nodes so many a second in all. */
const WRITES_PER_SECOND = 200;
const LEAST_KEPT_MS = 15_000;
const TERM_MS = 5000;
const RENEW_MICROS = 2_000_000;
const MERGED_KEPT_MS = 15_000;
const WATCH_KEPT_MS = 15_000;
const WATCH_AGAIN_MICROS = 5_000_000;
const SALT_KEPT_MS = 8 * 24 * 3_600_000;
const SALT_BYTES = 16;
/** Parsing a thousand snapshots in one go blocks for up to 100 ms, measured; so many take 2. */
const PER_TURN = 25;
const MOST_NODES_SHOWN = 200;
const MOST_MERGED_BYTES = 65_536;
const MOST_ENTRY_BYTES = 1024;

/** What a fleet is made of. */
export interface FleetParts {
  readonly nodeId: string;
  readonly board: BoardStore;
  readonly clock: Clock;
  readonly maxSeries: number;
  /** This node's own figures. */
  snapshot(): NodeSnapshot;
  /** How many nodes there are, as far as this one knows. */
  nodes(): number;
  /** Whether an alert is pending or firing: then figures come more often. */
  isAlarmed(): boolean;
  /** Hashes of keys are made with this, so that all nodes show the same. */
  useSalt(salt: Uint8Array): void;
  /** A turn has failed; the next one is tried all the same. */
  failed(error: unknown): void;
}

/**
 * The fleet on any node: each writes its figures to the board, one merges them, and any can read the result. The store
 * is asked by a timer of each node, never by viewers; so the cost does not grow with them.
 */
export class Fleet {
  isLeading = false;
  /** The figures of all nodes; undefined while this one does not lead. */
  merge: FleetMerge | undefined;
  private readonly offsetMs: number;
  private periodMs = PERIOD_MS;
  private turnOf = -1;
  private isBusy = false;
  private leadAt = -Infinity;
  private mergedAt = 0;
  private own: FleetState | undefined;
  private read: { readonly state: FleetState | undefined; readonly atMicros: number } | undefined;
  private watchedAt = -Infinity;
  private hasSalt = false;
  /** The minute of the last look. */
  private written = -1;
  private turn: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(private readonly parts: FleetParts) {
    this.offsetMs = spread(parts.nodeId, PERIOD_MS);
  }

  /** A second has passed. */
  tick(nowMicros: number): void {
    if (this.isBusy || this.closed) return;
    const turnOf = Math.floor((nowMicros / 1000 + this.offsetMs) / this.periodMs);
    const isDue = turnOf !== this.turnOf;
    const mustRenew = this.isLeading && nowMicros - this.leadAt >= RENEW_MICROS;
    if (!isDue && !mustRenew) return;
    this.turnOf = turnOf;
    this.isBusy = true;
    this.turn = this.take(nowMicros, isDue)
      .catch((error: unknown) => {
        // A store that cannot answer makes nobody leader.
        this.isLeading = false;
        this.merge = undefined;
        this.parts.failed(error);
      })
      .finally(() => (this.isBusy = false));
  }

  /** Resolves when the turn that goes on is over. */
  settled(): Promise<void> {
    return this.turn;
  }

  /** The fleet as it was merged last; undefined if nobody has of late, or the store cannot be read. */
  async state(): Promise<FleetState | undefined> {
    const now = this.parts.clock.now();
    const { board } = this.parts;
    try {
      if (now - this.watchedAt > WATCH_AGAIN_MICROS) {
        this.watchedAt = now;
        await board.set('watch', '1', WATCH_KEPT_MS);
      }
      if (this.isLeading && this.own !== undefined) return this.own;
      if (this.read !== undefined && now - this.read.atMicros < 1_000_000) return this.read.state;
      const text = await board.get('merged');
      this.read = { state: text === undefined ? undefined : fleetStateOf(text), atMicros: now };
      return this.read.state;
    } catch (error) {
      this.parts.failed(error);
      return this.read?.state;
    }
  }

  /** The node leaves: nobody waits for its figures, and the next one may lead. */
  async close(): Promise<void> {
    this.closed = true;
    await this.turn;
    const { board, nodeId } = this.parts;
    try {
      await board.remove(nodeId);
      if (this.isLeading) await board.resign();
    } catch {
      // Both end by themselves.
    }
    board.close();
  }

  private async take(nowMicros: number, isDue: boolean): Promise<void> {
    const { board, nodeId } = this.parts;
    if (isDue) {
      await this.shareSalt();
      const keptMs = Math.max(LEAST_KEPT_MS, 3 * this.periodMs);
      await board.write(nodeId, encodeSnapshot(this.parts.snapshot()), keptMs);
      const isWatched = this.parts.isAlarmed() || (await board.peek('watch')) !== undefined;
      this.periodMs = isWatched ? watchedPeriodMs(this.parts.nodes()) : PERIOD_MS;
    }
    await this.lead(nowMicros);
    if (this.isLeading && isDue) await this.mergeAll();
  }

  private async lead(nowMicros: number): Promise<void> {
    const wasLeading = this.isLeading;
    this.isLeading = await this.parts.board.lead(TERM_MS);
    this.leadAt = nowMicros;
    if (!this.isLeading) this.merge = undefined;
    if (!this.isLeading || wasLeading) return;
    this.merge = new FleetMerge(this.parts.maxSeries);
    this.mergedAt = nowMicros;
    this.own = undefined;
    await this.restore(this.merge);
  }

  private async shareSalt(): Promise<void> {
    if (this.hasSalt) return;
    const { board } = this.parts;
    const known = await board.peek('salt');
    if (known === undefined) {
      await board.set('salt', randomBytes(SALT_BYTES).toString('hex'), SALT_KEPT_MS);
      // Another node may have done the same just now; the next turn reads what holds.
      return;
    }
    this.parts.useSalt(Buffer.from(known, 'hex'));
    this.hasSalt = true;
  }

  private async mergeAll(): Promise<void> {
    const { board, clock, nodeId } = this.parts;
    const merge = this.merge!;
    const nodes = await board.nodes();
    merge.begin();
    for (let first = 0; first < nodes.length; first += PER_TURN) {
      const entries = await board.read(nodes.slice(first, first + PER_TURN));
      const now = clock.now();
      for (const { node, text } of entries) {
        const snapshot = text === undefined ? undefined : decodeSnapshot(node, text);
        if (snapshot === undefined) {
          if (merge.missed(node, now)) await board.remove(node);
        } else if (snapshot === 'damaged') merge.damaged++;
        else if (snapshot === 'other version') merge.otherVersions++;
        else merge.add(snapshot, now);
      }
      await new Promise<void>((resolve) => clock.soon(resolve));
    }
    merge.keepOnly(new Set(nodes));
    const now = clock.now();
    const epochMicros = clock.epochMs(now) * 1000;
    merge.end(epochMicros, (now - this.mergedAt) / 1000);
    this.mergedAt = now;
    this.own = stateOfFleet(merge, epochMicros, nodeId, board.isShared);
    await board.set('merged', textOf(this.own), MERGED_KEPT_MS);
    await this.keepHistory(merge, epochMicros);
  }

  /** The minute that goes on is on the board with each look, and the hour with each minute: for whoever leads next. */
  private async keepHistory({ table }: FleetMerge, epochMicros: number): Promise<void> {
    const { board } = this.parts;
    const minute = table.total.minutes.slotAt(epochMicros);
    const isNewMinute = minute !== this.written;
    this.written = minute;
    for (const horizon of isNewMinute ? (['minutes', 'hours'] as const) : (['minutes'] as const)) {
      const { length } = table.total[horizon]!;
      const slot = table.total[horizon]!.slotAt(epochMicros);
      const entry = entryOf(table.all(), horizon, slot);
      const oldest = isNewMinute ? slot - length : undefined;
      if (entry !== undefined) await board.putEntry(horizon, slot, entry, oldest);
    }
  }

  private async restore(merge: FleetMerge): Promise<void> {
    for (const horizon of ['minutes', 'hours'] as const) {
      const { board, clock } = this.parts;
      const ring = merge.table.total[horizon]!;
      const oldest = ring.slotAt(clock.epochMs(clock.now()) * 1000) - ring.length;
      const stale: string[] = [];
      for (const [slot, text] of Object.entries(await board.entries(horizon))) {
        if (!(Number(slot) > oldest)) stale.push(slot);
        else restoreEntry(merge, horizon, Number(slot), text);
      }
      if (stale.length > 0) await board.forgetEntries(horizon, stale);
    }
  }
}

function watchedPeriodMs(nodes: number): number {
  return Math.min(PERIOD_MS, Math.max(1, Math.ceil(nodes / WRITES_PER_SECOND)) * 1000);
}

function stateOfFleet(
  merge: FleetMerge,
  epochMicros: number,
  leader: string,
  isShared: boolean,
): FleetState {
  const nodes = merge.nodes().sort((one, other) => other.rate - one.rate);
  return {
    atMs: Math.round(epochMicros / 1000),
    leader,
    isShared,
    nodes: nodes.slice(0, MOST_NODES_SHOWN),
    nodeCount: nodes.length,
    // The slot of this look counts, although its second is not over.
    series: merge.table.all().map((series) => stateOf(series, epochMicros + 1_000_000)),
    deniedKeys: merge.deniedKeys(),
    damaged: merge.damaged,
    otherVersions: merge.otherVersions,
  };
}

function textOf(state: FleetState): string {
  let text = JSON.stringify({ v: 1, ...state });
  let { nodes, series } = state;
  while (Buffer.byteLength(text) > MOST_MERGED_BYTES && nodes.length + series.length > 8) {
    nodes = nodes.slice(0, Math.ceil(nodes.length / 2));
    series = series.slice(0, Math.ceil(series.length / 2));
    text = JSON.stringify({ v: 1, ...state, nodes, series });
  }
  return text;
}

/** Of another version, or nothing of ours: undefined. */
function fleetStateOf(text: string): FleetState | undefined {
  try {
    const { v, ...state } = JSON.parse(text) as { v: number } & FleetState;
    const isWhole = v === 1 && Array.isArray(state.nodes) && Array.isArray(state.series);
    return isWhole ? state : undefined;
  } catch {
    return undefined;
  }
}

const FIGURES = Object.keys(noFigures()) as (keyof Figures)[];

type Entry = [kind: string, name: string | null, figures: (number | null)[]];

/** The slot of the busiest series, as much of it as an entry holds. */
function entryOf(all: readonly Series[], horizon: 'minutes' | 'hours', slot: number) {
  const found = all.flatMap((series) => {
    const figures = series.ring(horizon)?.at(slot);
    return figures === undefined ? [] : [{ series, figures }];
  });
  found.sort((one, other) => other.figures.count - one.figures.count);
  const entries: Entry[] = [];
  let text: string | undefined;
  for (const { series, figures } of found) {
    const rounded = FIGURES.map((name) => Math.round(figures[name] * 1000) / 1000);
    entries.push([series.kind, series.of ?? null, rounded]);
    const longer = JSON.stringify(entries);
    if (longer.length > MOST_ENTRY_BYTES) break;
    text = longer;
  }
  return text;
}

function restoreEntry(
  { table }: FleetMerge,
  horizon: 'minutes' | 'hours',
  slot: number,
  text: string,
): void {
  let entries: unknown;
  try {
    entries = JSON.parse(text);
  } catch {
    return;
  }
  if (!Array.isArray(entries) || !Number.isSafeInteger(slot)) return;
  for (const entry of entries as Entry[]) {
    if (!Array.isArray(entry) || !Array.isArray(entry[2])) continue;
    const [kind, name, values] = entry;
    const ring: Ring | undefined = table.ensure(kind, name ?? undefined)?.ring(horizon);
    if (ring === undefined || values.length !== FIGURES.length) continue;
    const figures = noFigures();
    FIGURES.forEach((figure, index) => {
      const value = values[index];
      if (typeof value === 'number' && Number.isFinite(value)) figures[figure] = value;
    });
    ring.add((slot + 0.5) * ring.sizeMs * 1000, figures);
  }
}
