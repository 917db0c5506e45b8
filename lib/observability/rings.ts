/** The figures of a slot, in the order of a ring's columns. Counts add up; see FIGURES for the others. */
export interface SlotFigures {
  /** How long the readings of the slot cover, in milliseconds: less than its size at the start and after a stall. */
  spanMs: number;
  /** Requests, calls or decisions; `denied` of them were turned away. */
  count: number;
  denied: number;
  /** Answers of each degrade level. */
  degraded1: number;
  degraded2: number;
  degraded3: number;
  degraded4: number;
  errors: number;
  /** Calls of a resource that took too long. */
  slow: number;
  /** Tokens that were used. */
  used: number;
  /** Times of which p50, p99 and max (in microseconds) were made; NaN where there was none. */
  timed: number;
  p50: number;
  p99: number;
  max: number;
  /** The most requests and the most tokens per second of one slot of the next finer ring. */
  peak: number;
  peakUsed: number;
}

type Kind = 'sum' | 'latest' | 'most';

/**
 * How two readings of one slot become one. Quantiles cannot be made of quantiles: whoever writes them has the
 * histogram of the whole slot, and the latest holds.
 */
const FIGURES: Readonly<Record<keyof SlotFigures, Kind>> = {
  spanMs: 'sum',
  count: 'sum',
  denied: 'sum',
  degraded1: 'sum',
  degraded2: 'sum',
  degraded3: 'sum',
  degraded4: 'sum',
  errors: 'sum',
  slow: 'sum',
  used: 'sum',
  timed: 'sum',
  p50: 'latest',
  p99: 'latest',
  max: 'most',
  peak: 'most',
  peakUsed: 'most',
};

const NAMES = Object.keys(FIGURES) as (keyof SlotFigures)[];
/** The index of each figure in a row, and among the columns of a ring. */
export const COLUMN = Object.fromEntries(NAMES.map((name, index) => [name, index])) as Readonly<
  Record<keyof SlotFigures, number>
>;
const KINDS = NAMES.map((name) => FIGURES[name]);
const NOTHING = NAMES.map((name) => (name === 'p50' || name === 'p99' || name === 'max' ? NaN : 0));

const NO_FIGURES = Object.fromEntries(
  NAMES.map((name, index) => [name, NOTHING[index]]),
) as unknown as SlotFigures;

export const noFigures = (): SlotFigures => ({ ...NO_FIGURES });

/** Figures by their places: what is written every second for every series is not looked up by name. */
export const newRow = (): Float64Array => Float64Array.from(NOTHING);

function fillRow(row: Float64Array, figures: Readonly<SlotFigures>): Float64Array {
  for (let index = 0; index < NAMES.length; index++) row[index] = figures[NAMES[index]!];
  return row;
}

const ROW = newRow();
const PART = newRow();

/** One slot of a ring that has data. */
export interface Slot extends Readonly<SlotFigures> {
  /** The number of the slot: its beginning is `slot` × the ring's size. */
  readonly slot: number;
}

/** Several slots of a ring together. */
export interface Span extends SlotFigures {
  /** Number of slots that had data. */
  slots: number;
}

const EMPTY = -1;

/**
 * The last `length` slots of time, each with its figures. A slot is addressed by floor(now / size), so a loop
 * that was stalled leaves gaps and smears nothing. A gap is no data: it is not 0 of anything.
 *
 * A figure takes memory from the first time on that it is not what a slot has anyway.
 */
export class Ring {
  private readonly slots: Float64Array;
  private readonly columns: (Float64Array | undefined)[] = NAMES.map(() => undefined);

  constructor(
    readonly sizeMs: number,
    readonly length: number,
  ) {
    this.slots = new Float64Array(length).fill(EMPTY);
  }

  slotAt(nowMicros: number): number {
    return Math.floor(nowMicros / (this.sizeMs * 1000));
  }

  /** Adds figures to the slot of that instant. */
  add(nowMicros: number, figures: Readonly<SlotFigures>): void {
    this.addRow(nowMicros, fillRow(ROW, figures));
  }

  /** Adds the figures of a time that ends at that instant: each slot that it covers gets its part. */
  addSpan(endMicros: number, figures: Readonly<SlotFigures>): void {
    this.addSpanRow(endMicros, fillRow(ROW, figures));
  }

  addRow(nowMicros: number, row: Float64Array): void {
    this.addTo(this.slotAt(nowMicros), row);
  }

  addSpanRow(endMicros: number, row: Float64Array): void {
    const sizeMicros = this.sizeMs * 1000;
    const spanMicros = row[COLUMN.spanMs]! * 1000;
    const last = Math.ceil(endMicros / sizeMicros) - 1;
    const first = Math.floor((endMicros - spanMicros) / sizeMicros);
    if (first >= last) return this.addRow(endMicros - spanMicros, row);
    for (let slot = Math.max(first, last - this.length + 1); slot <= last; slot++) {
      const from = Math.max(slot * sizeMicros, endMicros - spanMicros);
      const part = (Math.min((slot + 1) * sizeMicros, endMicros) - from) / spanMicros;
      for (let index = 0; index < NAMES.length; index++) {
        PART[index] = KINDS[index] === 'sum' ? row[index]! * part : row[index]!;
      }
      this.addTo(slot, PART);
    }
  }

  private addTo(slot: number, row: Float64Array): void {
    const cell = this.begin(slot);
    for (let index = 0; index < NAMES.length; index++) {
      const value = row[index]!;
      const column = this.columns[index];
      if (column === undefined) {
        if (Object.is(value, NOTHING[index])) continue;
        this.columnOf(index)[cell] = value;
      } else {
        column[cell] = joined(KINDS[index]!, column[cell]!, value);
      }
    }
  }

  /** The figures of a slot; undefined where there is no data. */
  at(slot: number): Slot | undefined {
    const cell = cellOf(slot, this.length);
    if (slot < 0 || this.slots[cell] !== slot) return undefined;
    const of = (index: number): number => this.columns[index]?.[cell] ?? NOTHING[index]!;
    // Written out: an object that gets its fields by name, one by one, takes ten times as long.
    return {
      slot,
      spanMs: of(COLUMN.spanMs),
      count: of(COLUMN.count),
      denied: of(COLUMN.denied),
      degraded1: of(COLUMN.degraded1),
      degraded2: of(COLUMN.degraded2),
      degraded3: of(COLUMN.degraded3),
      degraded4: of(COLUMN.degraded4),
      errors: of(COLUMN.errors),
      slow: of(COLUMN.slow),
      used: of(COLUMN.used),
      timed: of(COLUMN.timed),
      p50: of(COLUMN.p50),
      p99: of(COLUMN.p99),
      max: of(COLUMN.max),
      peak: of(COLUMN.peak),
      peakUsed: of(COLUMN.peakUsed),
    };
  }

  /** One figure of a slot; what a slot has anyway where there is no data. */
  value(slot: number, figure: keyof SlotFigures): number {
    const cell = cellOf(slot, this.length);
    const column = COLUMN[figure];
    const known = slot >= 0 && this.slots[cell] === slot;
    return (known ? this.columns[column]?.[cell] : undefined) ?? NOTHING[column]!;
  }

  /** The last `count` slots, oldest first, up to and with that of `nowMicros`; undefined where there is no data. */
  last(nowMicros: number, count = this.length): (Slot | undefined)[] {
    const length = Math.min(count, this.length);
    const first = this.slotAt(nowMicros) - length + 1;
    return Array.from({ length }, (_, index) => this.at(first + index));
  }

  /**
   * The last `count` whole slots, those that ended before `nowMicros`, as one. `skip` leaves out the latest of
   * them; -1 takes the slot that goes on in. Quantiles are those of the worst slot; for exact ones see
   * `Series.times`.
   */
  sum(nowMicros: number, count: number, skip = 0): Span {
    const end = this.slotAt(nowMicros) - skip;
    const first = Math.max(0, end - Math.min(count, this.length));
    const span: Span = { ...noFigures(), slots: this.known(first, end) };
    if (span.slots === 0) return span;
    // By column: slot by slot took ten times as long.
    for (let index = 0; index < NAMES.length; index++) {
      const column = this.columns[index];
      if (column === undefined) continue;
      span[NAMES[index]!] =
        KINDS[index] === 'sum'
          ? this.summed(column, first, end)
          : this.most(column, first, end, NOTHING[index]!);
    }
    return span;
  }

  /** The same slots, of which single figures are asked. */
  stretch(nowMicros: number, count: number, skip = 0): Stretch {
    const end = this.slotAt(nowMicros) - skip;
    return new Stretch(this, Math.max(0, end - Math.min(count, this.length)), end);
  }

  /** Number of these slots that have data. @internal */
  known(first: number, end: number): number {
    const { slots, length } = this;
    let known = 0;
    for (let slot = first, cell = first % length; slot < end; slot++) {
      if (slots[cell] === slot) known++;
      if (++cell === length) cell = 0;
    }
    return known;
  }

  /** The sum of a count over these slots. @internal */
  amount(figure: keyof Counted, first: number, end: number): number {
    const column = this.columns[COLUMN[figure]];
    return column === undefined ? 0 : this.summed(column, first, end);
  }

  private summed(column: Float64Array, first: number, end: number): number {
    const { slots, length } = this;
    let sum = 0;
    for (let slot = first, cell = first % length; slot < end; slot++) {
      const value = column[cell]!;
      if (slots[cell] === slot && !Number.isNaN(value)) sum += value;
      if (++cell === length) cell = 0;
    }
    return sum;
  }

  private most(column: Float64Array, first: number, end: number, none: number): number {
    const { slots, length } = this;
    let most = none;
    for (let slot = first, cell = first % length; slot < end; slot++) {
      const value = column[cell]!;
      if (slots[cell] === slot && (value > most || Number.isNaN(most))) most = value;
      if (++cell === length) cell = 0;
    }
    return most;
  }

  /** Bytes of the figures; for the bound on memory. */
  get bytes(): number {
    return this.columns.reduce(
      (sum, column) => sum + (column?.byteLength ?? 0),
      this.slots.byteLength,
    );
  }

  /** The cell of a slot, whose figures of a time long gone are forgotten. */
  private begin(slot: number): number {
    const cell = cellOf(slot, this.length);
    if (this.slots[cell] === slot) return cell;
    this.slots[cell] = slot;
    for (let index = 0; index < NAMES.length; index++) {
      const column = this.columns[index];
      if (column !== undefined) column[cell] = NOTHING[index]!;
    }
    return cell;
  }

  private columnOf(index: number): Float64Array {
    return (this.columns[index] = new Float64Array(this.length).fill(NOTHING[index]!));
  }
}

/** Figures that add up. */
type Counted = Omit<SlotFigures, 'p50' | 'p99' | 'max' | 'peak' | 'peakUsed'>;

/** Some slots in a row. Rules ask for two or three figures of each series, every second: only these are summed. */
export class Stretch {
  constructor(
    private readonly ring: Ring,
    private readonly first: number,
    private readonly end: number,
  ) {}

  /** Number of slots that have data. */
  get slots(): number {
    return this.ring.known(this.first, this.end);
  }

  of(figure: keyof Counted): number {
    return this.ring.amount(figure, this.first, this.end);
  }
}

/** Slots before the beginning of the clock have no cell of their own and are never written. */
const cellOf = (slot: number, length: number): number => ((slot % length) + length) % length;

/** NaN is no figure: the other one holds. */
function joined(kind: Kind, before: number, value: number): number {
  if (Number.isNaN(value)) return before;
  if (Number.isNaN(before)) return value;
  if (kind === 'sum') return before + value;
  return kind === 'latest' ? value : Math.max(before, value);
}
