import { LogLinear } from '../common/histogram.js';
import { COLUMN, newRow, Ring } from './rings.js';

export const HORIZONS = ['seconds', 'minutes', 'hours'] as const;
/** How far back: two minutes by seconds, three hours by minutes, a week by hours. */
export type Horizon = (typeof HORIZONS)[number];

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const SECONDS_OF_MINUTE = 60;

const SECONDS = 120;
const MINUTES = 180;
const HOURS = 168;

/** A look at a fleet may be one period late; after a longer time without any it is not known when its figures came. */
export const LONGEST_LOOK_MS = 10_000;

/** No window of any rule is longer than this; what is older has its quantiles in the slots. */
const MINUTES_OF_TIMES = 15;

/** The subject of a series. `total` is all requests, `store` the calls to Redis. */
export type SeriesKind = 'total' | 'app' | 'policy' | 'resource' | 'store';

/** A name of a series: `total`, `store`, or kind and name: `app:checkout`. */
export function seriesName(kind: SeriesKind, name?: string): string {
  return name === undefined ? kind : `${kind}:${name}`;
}

/** The parts of such a name; undefined if it is none. */
export function seriesParts(
  text: string,
): { readonly kind: SeriesKind; readonly name: string | undefined } | undefined {
  if (text === 'total' || text === 'store') return { kind: text, name: undefined };
  const [, kind, name] = /^(app|policy|resource):([^]*)$/.exec(text) ?? [];
  return kind === undefined ? undefined : { kind: kind as SeriesKind, name };
}

/** Counts of something since the start. Only their differences are kept. */
export interface Counts {
  count: number;
  denied: number;
  /** By degrade level 1 to 4. */
  degraded1: number;
  degraded2: number;
  degraded3: number;
  degraded4: number;
  errors: number;
  /** Calls of a resource that took too long. */
  slow: number;
  used: number;
}

const COUNTS = [
  ...['count', 'denied', 'errors', 'slow', 'used'],
  ...['degraded1', 'degraded2', 'degraded3', 'degraded4'],
] as readonly (keyof Counts)[];
const COLUMNS = COUNTS.map((name) => COLUMN[name]);

/**
 * How the seconds are read. `ticks`: one by one, so that a longer time was a loop that stood still, of which the figures are
 * of the last second. `looks`: every few seconds, so that the figures are of all of these.
 */
export type SecondsRead = 'ticks' | 'looks';

export const noCounts = (): Counts => ({
  count: 0,
  denied: 0,
  degraded1: 0,
  degraded2: 0,
  degraded3: 0,
  degraded4: 0,
  errors: 0,
  slow: 0,
  used: 0,
});

/**
 * One thing that is watched, at three horizons: the last 120 s, 180 min and 168 h. A reading gives the counts
 * since the start; the series keeps what came in between.
 */
export class Series {
  readonly seconds = new Ring(SECOND_MS, SECONDS);
  readonly minutes = new Ring(MINUTE_MS, MINUTES);
  /** Only of few series: a week of all of them would be most of the memory. */
  readonly hours: Ring | undefined;
  /** The counts of the last reading, by their places in a row. */
  private readonly before = newRow().fill(0);
  private timesBefore: LogLinear | undefined;
  /** The times of the last minutes; the place of a slot is its remainder. */
  private readonly minuteTimes: TimesOfSlot[] = [];
  private hourTimes: TimesOfSlot | undefined;

  readonly name: string;
  private readonly secondsRead: SecondsRead;

  constructor(
    readonly kind: SeriesKind,
    /** Name of the app, the policy or the resource; undefined for `total` and `store`. */
    readonly of: string | undefined,
    {
      hours = false,
      seconds = 'ticks',
    }: { readonly hours?: boolean; readonly seconds?: SecondsRead } = {},
  ) {
    this.secondsRead = seconds;
    this.hours = hours ? new Ring(HOUR_MS, HOURS) : undefined;
    this.name = seriesName(kind, of);
  }

  ring(horizon: Horizon): Ring | undefined {
    return this[horizon];
  }

  /**
   * A reading: counts and times since the start, `spanMs` after the reading before. Counts that went back began
   * anew, and all of them are new. `perSecond` is what comes in a second just now, where that is known by itself.
   */
  read(
    atMicros: number,
    spanMs: number,
    counts: Readonly<Counts>,
    times?: LogLinear,
    perSecond?: Readonly<Counts>,
  ): void {
    const { before } = this;
    for (let i = 0; i < COUNTS.length; i++) {
      const column = COLUMNS[i]!;
      const count = counts[COUNTS[i]!];
      const more = count - before[column]!;
      ROW[column] = more >= 0 ? more : count;
      before[column] = count;
    }
    if (times === undefined) return this.addRow(atMicros, spanMs, undefined, perSecond);
    this.timesBefore ??= new LogLinear();
    MORE_TIMES.takeDifference(times, this.timesBefore);
    this.addRow(atMicros, spanMs, MORE_TIMES, perSecond);
  }

  /** So much has happened in `spanMs`, up to the instant `atMicros`: it is kept in the slots of that. */
  add(atMicros: number, spanMs: number, more: Readonly<Counts>, times?: LogLinear): void {
    for (let i = 0; i < COUNTS.length; i++) ROW[COLUMNS[i]!] = more[COUNTS[i]!];
    this.addRow(atMicros, spanMs, times);
  }

  /** The same of the counts in the row; of seconds the rates hold, where these are known by themselves. */
  private addRow(
    atMicros: number,
    spanMs: number,
    times?: LogLinear,
    perSecond?: Readonly<Counts>,
  ): void {
    const { seconds, minutes, hours } = this;
    const timed = times?.count ?? 0;
    ROW[COLUMN.spanMs] = spanMs;
    ROW[COLUMN.timed] = timed;
    setQuantiles(timed > 0 ? times : undefined);
    // A span of a few milliseconds, as after the start, would make one request a peak of hundreds.
    const lasted = Math.max(spanMs, SECOND_MS) / SECOND_MS;
    const isLook = this.secondsRead === 'looks' && spanMs <= LONGEST_LOOK_MS;
    const rates = isLook ? perSecond : undefined;
    ROW[COLUMN.peak] = rates?.count ?? ROW[COLUMN.count]! / lasted;
    ROW[COLUMN.peakUsed] = rates?.used ?? ROW[COLUMN.used]! / lasted;
    if (isLook) seconds.addSpanRow(atMicros, rates === undefined ? ROW : rowOf(rates, spanMs));
    else seconds.addRow(atMicros, ROW);
    const minute = minutes.slotAt(atMicros);
    if (timed > 0) setQuantiles(this.addToMinute(minute, times!));
    minutes.addRow(atMicros, ROW);
    if (hours === undefined) return;
    if (timed > 0) setQuantiles(this.addToHour(hours.slotAt(atMicros), times!));
    // An hour's peak is that of its busiest minute, which may still go on.
    const whole = this.wholeOf(minute, atMicros) / SECONDS_OF_MINUTE;
    ROW[COLUMN.peak] = minutes.value(minute, 'count') * whole;
    ROW[COLUMN.peakUsed] = minutes.value(minute, 'used') * whole;
    hours.addRow(atMicros, ROW);
  }

  /** How many times as much all of a minute up to that instant is as what is known of it: in an outage nobody counts. */
  private wholeOf(minute: number, atMicros: number): number {
    const elapsedMs = atMicros / 1000 - minute * this.minutes.sizeMs;
    const part = elapsedMs / this.minutes.value(minute, 'spanMs');
    return part > 1 ? Math.min(part, MOST_TIMES_KNOWN) : 1;
  }

  /** The times of the last `count` whole minutes, after leaving out the latest `skip`; at most fifteen are kept. */
  times(nowMicros: number, count: number, skip = 0): LogLinear {
    const sum = new LogLinear();
    const end = this.minutes.slotAt(nowMicros) - skip;
    for (const { slot, times } of this.minuteTimes) {
      if (slot >= end - count && slot < end) sum.merge(times);
    }
    return sum;
  }

  /** Bytes of rings and histograms; for the bound on memory. */
  get bytes(): number {
    const histograms =
      this.minuteTimes.length + (this.timesBefore ? 1 : 0) + (this.hourTimes ? 1 : 0);
    const rings = this.seconds.bytes + this.minutes.bytes + (this.hours?.bytes ?? 0);
    return rings + histograms * MORE_TIMES.cells.byteLength;
  }

  private addToMinute(slot: number, more: LogLinear): LogLinear {
    const { minuteTimes } = this;
    const place = slot % MINUTES_OF_TIMES;
    let minute = minuteTimes.find((one) => one.slot % MINUTES_OF_TIMES === place);
    if (minute === undefined) minuteTimes.push((minute = new TimesOfSlot(slot)));
    return minute.add(slot, more);
  }

  private addToHour(slot: number, more: LogLinear): LogLinear {
    return (this.hourTimes ??= new TimesOfSlot(slot)).add(slot, more);
  }
}

/** The row with what comes in that time at these rates. */
function rowOf(perSecond: Readonly<Counts>, spanMs: number): Float64Array {
  RATES_ROW.set(ROW);
  for (let i = 0; i < COUNTS.length; i++) {
    RATES_ROW[COLUMNS[i]!] = (perSecond[COUNTS[i]!] * spanMs) / SECOND_MS;
  }
  return RATES_ROW;
}

/** A minute of which less is known than half says little about all of it. */
const MOST_TIMES_KNOWN = 2;

class TimesOfSlot {
  readonly times = new LogLinear();

  constructor(public slot: number) {}

  /** The times of that slot so far; those of an earlier one are forgotten. */
  add(slot: number, more: LogLinear): LogLinear {
    if (this.slot !== slot) this.times.clear();
    this.slot = slot;
    this.times.merge(more);
    return this.times;
  }
}

// The times of the reading in progress, one object for all, so that none allocates: nothing awaits in between.
const MORE_TIMES = new LogLinear();
const ROW = newRow();
const RATES_ROW = newRow();
const QUANTILES = [0.5, 0.99, 1];

function setQuantiles(times: LogLinear | undefined): void {
  const [p50, p99, max] = times?.quantiles(QUANTILES) ?? NO_QUANTILES;
  ROW[COLUMN.p50] = p50!;
  ROW[COLUMN.p99] = p99!;
  ROW[COLUMN.max] = max!;
}

const NO_QUANTILES = QUANTILES.map(() => NaN);
