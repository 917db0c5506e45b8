import { type LogLinear } from '../common/histogram.js';
import { noCounts, Series, type Counts, type SecondsRead, type SeriesKind } from './series.js';

/** The names that found no room, of one kind, as one series. */
export const OTHER = '(other)';

export const NAMED_KINDS = ['app', 'policy', 'resource'] as const;
export type NamedKind = (typeof NAMED_KINDS)[number];

const isNamedKind = (kind: string): kind is NamedKind => NAMED_KINDS.includes(kind as NamedKind);

/** The counts of one name, or of all requests, since the start. */
export interface SeriesRow extends Counts {
  times: LogLinear | undefined;
  /** What comes in a second just now, where the counts are not of each second. */
  perSecond?: Counts;
}

/** The counts of the sources since the start, as of one tick. Rows are kept: a tick allocates none. */
export class Reading {
  readonly total: SeriesRow = { ...noCounts(), times: undefined };
  readonly store: SeriesRow = { ...noCounts(), times: undefined };
  readonly named: Readonly<Record<NamedKind, Map<string, SeriesRow>>> = {
    app: new Map(),
    policy: new Map(),
    resource: new Map(),
  };

  /** The row of a name, for its source to fill in. */
  of(kind: NamedKind, name: string): SeriesRow {
    const rows = this.named[kind];
    let row = rows.get(name);
    if (row === undefined) rows.set(name, (row = { ...noCounts(), times: undefined }));
    return row;
  }

  /** Nothing comes in a second, until it is told anew. */
  stopRates(): void {
    const { total, store, named } = this;
    const all = NAMED_KINDS.flatMap((kind) => [...named[kind].values()]);
    for (const { perSecond } of [total, store, ...all]) {
      if (perSecond !== undefined) Object.assign(perSecond, noCounts());
    }
  }

  /** All rows are zero again: a source that is silent has counted nothing. */
  clear(): void {
    Object.assign(this.total, NOTHING);
    Object.assign(this.store, NOTHING);
    for (const kind of NAMED_KINDS) {
      for (const row of this.named[kind].values()) Object.assign(row, NOTHING);
    }
  }
}

const NOTHING: SeriesRow = { ...noCounts(), times: undefined };

/** How many series of metrics a name is (families.ts), and how many there may be in all, without names and with. */
const METRICS_OF: Readonly<Record<NamedKind, number>> = { app: 26, policy: 13, resource: 47 };
const MOST_METRICS = 2000;
const METRICS_WITHOUT_NAMES = 300;

/** A week of so many series is kept, by name in the order in which they came; and of so many policies. */
const MOST_WITH_HOURS = 32;

/**
 * The series that are kept: all requests, the store, and the busiest names. A name has its series until the
 * process ends, so no counter ever goes back; names that come when there is no room are one series `(other)`
 * of their kind, and are counted.
 */
export class SeriesTable {
  readonly total: Series;
  readonly store: Series;
  private readonly named: Readonly<Record<NamedKind, Map<string, Series>>> = {
    app: new Map(),
    policy: new Map(),
    resource: new Map(),
  };
  private readonly others = new Map<NamedKind, Series>();
  private readonly leftOut: Readonly<Record<NamedKind, Set<string>>> = {
    app: new Set(),
    policy: new Set(),
    resource: new Set(),
  };
  private names = 0;
  private metrics = METRICS_WITHOUT_NAMES;
  private readonly withHours = { policies: 0, others: 0 };

  constructor(
    /** The most names that are watched one by one. */
    private readonly most: number,
    private readonly seconds: SecondsRead = 'ticks',
  ) {
    this.total = new Series('total', undefined, { hours: true, seconds });
    this.store = new Series('store', undefined, { seconds });
  }

  /** Names that found no room. */
  get dropped(): number {
    return NAMED_KINDS.reduce((sum, kind) => sum + this.leftOut[kind].size, 0);
  }

  /** Whether the name is watched by itself; if not, it is part of `(other)`. */
  isNamed(kind: NamedKind, name: string): boolean {
    return this.named[kind].has(name);
  }

  /** Whether the name found no room. */
  isLeftOut(kind: NamedKind, name: string): boolean {
    return this.leftOut[kind].has(name);
  }

  /** The series of a name; `(other)` for those without room. */
  find(kind: SeriesKind, name?: string): Series | undefined {
    if (kind === 'total' || kind === 'store') return this[kind];
    return name === OTHER ? this.others.get(kind) : this.named[kind].get(name ?? '');
  }

  all(): Series[] {
    const named = NAMED_KINDS.flatMap((kind) => [...this.named[kind].values()]);
    return [this.total, this.store, ...named, ...this.others.values()];
  }

  read(atMicros: number, spanMs: number, reading: Reading): void {
    const { total, store } = reading;
    this.total.read(atMicros, spanMs, total, total.times, total.perSecond);
    this.store.read(atMicros, spanMs, store, store.times, store.perSecond);
    for (const kind of NAMED_KINDS) this.readNamed(kind, atMicros, spanMs, reading);
  }

  /** Gives new names their place, or none. */
  admitAll({ named }: Reading): void {
    for (const kind of NAMED_KINDS) this.admit(kind, named[kind]);
  }

  private readNamed(kind: NamedKind, atMicros: number, spanMs: number, reading: Reading): void {
    const rows = reading.named[kind];
    const named = this.named[kind];
    this.admit(kind, rows);
    for (const [name, series] of named) {
      const row = rows.get(name);
      if (row !== undefined) series.read(atMicros, spanMs, row, row.times, row.perSecond);
    }
    const others = this.othersOf(kind, reading);
    if (others === undefined) return;
    let series = this.others.get(kind);
    if (series === undefined) {
      series = new Series(kind, OTHER, { seconds: this.seconds });
      this.others.set(kind, series);
    }
    series.read(atMicros, spanMs, others, undefined, others.perSecond);
  }

  /** New names that have counted anything, the busiest first. */
  private admit(kind: NamedKind, rows: ReadonlyMap<string, SeriesRow>): void {
    if (rows.size === this.named[kind].size + this.leftOut[kind].size) return;
    const isNew = (name: string): boolean =>
      !this.named[kind].has(name) && !this.leftOut[kind].has(name);
    const added = [...rows].filter(([name, row]) => row.count > 0 && isNew(name));
    added.sort(([, one], [, other]) => other.count - one.count);
    for (const [name] of added) this.admitOne(kind, name);
  }

  private admitOne(kind: NamedKind, name: string): void {
    if (this.named[kind].has(name) || this.leftOut[kind].has(name)) return;
    const metrics = this.metrics + METRICS_OF[kind];
    if (this.names >= this.most || metrics > MOST_METRICS) {
      this.leftOut[kind].add(name);
      return;
    }
    this.names++;
    this.metrics = metrics;
    const group = kind === 'policy' ? 'policies' : 'others';
    const hours = this.withHours[group] < MOST_WITH_HOURS;
    if (hours) this.withHours[group]++;
    this.named[kind].set(name, new Series(kind, name, { hours, seconds: this.seconds }));
  }

  /** The counts of all names of a kind that found no room; undefined if there are none. */
  othersOf(
    kind: NamedKind,
    { named }: Reading,
  ): (Counts & Pick<SeriesRow, 'perSecond'>) | undefined {
    if (this.leftOut[kind].size === 0) return undefined;
    const sum: Counts & Pick<SeriesRow, 'perSecond'> = noCounts();
    for (const name of this.leftOut[kind]) {
      const row = named[kind].get(name);
      if (row === undefined) continue;
      addTo(sum, row);
      if (row.perSecond !== undefined) addTo((sum.perSecond ??= noCounts()), row.perSecond);
    }
    return sum;
  }

  /** The series of a name, made if there is room for it. */
  ensure(kind: string, name: string | undefined): Series | undefined {
    if (kind === 'total' || kind === 'store') return this[kind];
    if (!isNamedKind(kind) || name === undefined || name === OTHER) return undefined;
    this.admitOne(kind, name);
    return this.named[kind].get(name);
  }
}

const FIGURES = Object.keys(noCounts()) as (keyof Counts)[];

/** Adds so many times the other counts. */
export function addTo(sum: Counts, other: Readonly<Counts>, times = 1): void {
  for (const figure of FIGURES) sum[figure] += other[figure] * times;
}
