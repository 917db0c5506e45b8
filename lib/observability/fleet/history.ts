import { type Clock } from '../../common/clock.js';
import { type BoardStore } from '../../stores/board-store.js';
import { noFigures, Ring, type SlotFigures } from '../rings.js';
import { historyOf, type SeriesHistory } from '../series-history.js';
import { SeriesTable } from '../series-table.js';
import { LONGEST_LOOK_MS, seriesParts, type Horizon, type Series } from '../series.js';
import { type FleetState } from '../state.js';
import { type FleetMerge } from './merge.js';

const MOST_ENTRY_BYTES = 1024;
const SECOND_MS = 1000;
const SECONDS = 120;
const SECONDS_TEXT = 'seconds';
/** Series of which a node keeps seconds that does not merge itself. */
const MOST_SEEN = 100;
/** The board is read again after so long. */
const READ_AGAIN_MICROS = 10_000_000;

/** A list of slots on the board. */
type StoredHorizon = 'minutes' | 'hours';

/**
 * The fleet's past: the node that merges puts minutes and hours on the board, for whoever merges next and for all who
 * want to see them, and of all requests and the store the last seconds. A node that looks on keeps the seconds that it
 * has read, of all series.
 */
export class FleetHistory {
  /** The minute of the last look. */
  private written = -1;
  private readonly seconds = new Map<string, Ring>();
  private seenMs = 0;
  private readSecondsAt = -Infinity;
  private readonly read = new Map<
    StoredHorizon,
    { readonly table: SeriesTable; readonly atMicros: number }
  >();

  constructor(
    private readonly board: BoardStore,
    private readonly clock: Pick<Clock, 'now' | 'epochMs'>,
    private readonly maxSeries: number,
  ) {}

  /** The minute and the hour that go on are on the board with each look: any look may be the last of either. */
  async keep({ table }: FleetMerge, epochMicros: number): Promise<void> {
    const minute = table.total.minutes.slotAt(epochMicros);
    const isNewMinute = minute !== this.written;
    this.written = minute;
    for (const horizon of ['minutes', 'hours'] as const) {
      const { length } = table.total[horizon]!;
      const slot = table.total[horizon]!.slotAt(epochMicros);
      const entry = entryOf(table.all(), horizon, slot);
      const oldest = isNewMinute ? slot - length : undefined;
      if (entry !== undefined) await this.board.putEntry(horizon, slot, entry, oldest);
    }
    await this.board.set(SECONDS_TEXT, secondsText(table, epochMicros), SECONDS * SECOND_MS);
  }

  /** Takes over what the node before has left. */
  async restore({ table }: FleetMerge): Promise<void> {
    for (const horizon of ['minutes', 'hours'] as const) {
      const stale = await this.restoreHorizon(table, horizon);
      if (stale.length > 0) await this.board.forgetEntries(horizon, stale);
    }
    await this.restoreSeconds((name) => table[name].seconds);
  }

  /** The history that another node has merged. */
  seen({ atMs, series }: FleetState): void {
    if (atMs <= this.seenMs) return;
    const sinceMs = atMs - this.seenMs;
    const spanMs = sinceMs <= LONGEST_LOOK_MS ? sinceMs : SECOND_MS;
    this.seenMs = atMs;
    const inSpan = (perSecond: number): number => (perSecond * spanMs) / SECOND_MS;
    for (const { name, rate, denied, errors, degraded, used, p50Ms, p99Ms } of series) {
      const ring = this.secondsOf(name);
      if (ring === undefined) continue;
      const [level1, level2, level3, level4] = degraded;
      ring.addSpan((atMs - SECOND_MS) * 1000, {
        ...noFigures(),
        ...{ spanMs, count: inSpan(rate), denied: inSpan(denied), errors: inSpan(errors) },
        ...{ used: inSpan(used), degraded1: inSpan(level1), degraded2: inSpan(level2) },
        ...{ degraded3: inSpan(level3), degraded4: inSpan(level4), peak: rate },
        ...{ p50: (p50Ms ?? NaN) * 1000, p99: (p99Ms ?? NaN) * 1000 },
      });
    }
  }

  /** Undefined if there is no room for another one. */
  private secondsOf(name: string): Ring | undefined {
    const known = this.seconds.get(name);
    if (known !== undefined || this.seconds.size >= MOST_SEEN) return known;
    const ring = new Ring(SECOND_MS, SECONDS);
    this.seconds.set(name, ring);
    return ring;
  }

  /** A series; `merge` is there where this node merges. */
  async of(
    name: string,
    horizon: Horizon,
    merge: FleetMerge | undefined,
  ): Promise<SeriesHistory | undefined> {
    const ring = await this.ringOf(name, horizon, merge);
    if (ring === undefined) return undefined;
    const epochMs = this.clock.epochMs(this.clock.now());
    return historyOf({ name, horizon, ring }, epochMs * 1000, epochMs);
  }

  private async ringOf(
    name: string,
    horizon: Horizon,
    merge: FleetMerge | undefined,
  ): Promise<Ring | undefined> {
    if (merge === undefined && horizon === 'seconds') {
      await this.readSeconds();
      return this.seconds.get(name);
    }
    const parts = seriesParts(name);
    if (parts === undefined) return undefined;
    const table = merge?.table ?? (await this.tableOf(horizon as StoredHorizon));
    return table.find(parts.kind, parts.name)?.ring(horizon);
  }

  /** All that the board has of a horizon. */
  async tableOf(horizon: StoredHorizon): Promise<SeriesTable> {
    const now = this.clock.now();
    const known = this.read.get(horizon);
    if (known !== undefined && now - known.atMicros < READ_AGAIN_MICROS) return known.table;
    const table = new SeriesTable(this.maxSeries);
    await this.restoreHorizon(table, horizon);
    this.read.set(horizon, { table, atMicros: now });
    return table;
  }

  /** Whoever begins to look has seen no seconds of the time before. */
  private async readSeconds(): Promise<void> {
    const now = this.clock.now();
    if (now - this.readSecondsAt < READ_AGAIN_MICROS) return;
    this.readSecondsAt = now;
    await this.restoreSeconds((name) => this.secondsOf(name));
  }

  private async restoreSeconds(ringOf: (name: KeptByTheSecond) => Ring | undefined): Promise<void> {
    const text = await this.board.get(SECONDS_TEXT);
    if (text !== undefined) restoreSeconds(text, ringOf);
  }

  /** Gives the slots that are too old. */
  private async restoreHorizon(table: SeriesTable, horizon: StoredHorizon): Promise<string[]> {
    const { board, clock } = this;
    const ring = table.total[horizon]!;
    const oldest = ring.slotAt(clock.epochMs(clock.now()) * 1000) - ring.length;
    const stale: string[] = [];
    for (const [slot, text] of Object.entries(await board.entries(horizon))) {
      if (!(Number(slot) > oldest)) stale.push(slot);
      else restoreEntry(table, horizon, Number(slot), text);
    }
    return stale;
  }
}

const FIGURES = Object.keys(noFigures()) as (keyof SlotFigures)[];

type StoredSeries = [kind: string, name: string | null, figures: (number | null)[]];

/** The slot of the busiest series, as much of it as an entry holds. */
function entryOf(all: readonly Series[], horizon: StoredHorizon, slot: number): string | undefined {
  const found = all.flatMap((series) => {
    const figures = series.ring(horizon)?.at(slot);
    return figures === undefined ? [] : [{ series, figures }];
  });
  // Capacity is a matter of all requests and of apps; of the others the busiest are worth a place.
  const rank = ({ kind }: Series): number => ['total', 'app'].indexOf(kind) + 1 || 3;
  found.sort(
    (one, other) =>
      rank(one.series) - rank(other.series) || other.figures.count - one.figures.count,
  );
  const entries: StoredSeries[] = [];
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
  table: SeriesTable,
  horizon: StoredHorizon,
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
  for (const entry of entries as StoredSeries[]) {
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

/** The series that the first screen has charts of. */
const KEPT_BY_THE_SECOND = ['total', 'store'] as const;
type KeptByTheSecond = (typeof KEPT_BY_THE_SECOND)[number];

/** By column, as most figures of a ring are zero all the time. */
interface StoredSeconds {
  /** The slot of the first value of each column. */
  readonly first: number;
  readonly series: Partial<Record<KeptByTheSecond, Partial<Record<keyof SlotFigures, number[]>>>>;
}

function secondsText(table: SeriesTable, epochMicros: number): string {
  const first = table.total.seconds.slotAt(epochMicros) - SECONDS + 1;
  const series: StoredSeconds['series'] = {};
  for (const name of KEPT_BY_THE_SECOND) {
    const slots = table[name].seconds.last(epochMicros, SECONDS);
    const columns: Partial<Record<keyof SlotFigures, (number | null)[]>> = {};
    for (const figure of FIGURES) {
      const column = slots.map((slot) => thousandths(slot?.[figure] ?? 0));
      if (column.some((value) => value !== 0 && value !== null)) columns[figure] = column;
    }
    series[name] = columns as StoredSeconds['series'][KeptByTheSecond];
  }
  return JSON.stringify({ first, series });
}

/** NaN is no number of JSON. */
const thousandths = (value: number): number | null =>
  Number.isNaN(value) ? null : Math.round(value * 1000) / 1000;

/** Seconds that a ring has already are what it has seen itself. */
function restoreSeconds(text: string, ringOf: (name: KeptByTheSecond) => Ring | undefined): void {
  const { first, series } = storedSeconds(text) ?? {};
  if (first === undefined || series === undefined) return;
  for (const name of KEPT_BY_THE_SECOND) {
    const ring = ringOf(name);
    const columns = series[name];
    if (ring === undefined || !Array.isArray(columns?.spanMs)) continue;
    for (let index = 0; index < Math.min(SECONDS, columns.spanMs.length); index++) {
      const slot = first + index;
      if (!(columns.spanMs[index]! > 0) || ring.at(slot) !== undefined) continue;
      const figures = noFigures();
      for (const figure of FIGURES) {
        const value: unknown = columns[figure]?.[index];
        if (typeof value === 'number' && Number.isFinite(value)) figures[figure] = value;
      }
      ring.add((slot + 0.5) * ring.sizeMs * 1000, figures);
    }
  }
}

function storedSeconds(text: string): StoredSeconds | undefined {
  try {
    const { first, series } = JSON.parse(text) as StoredSeconds;
    const isWhole = Number.isSafeInteger(first) && typeof series === 'object' && series !== null;
    return isWhole ? { first, series } : undefined;
  } catch {
    return undefined;
  }
}
