import { type Ring, type Slot } from './rings.js';

const HOURS_OF_DAY = 24;
/** A day of which so many hours have data is known; a process that sleeps at night has no full day. */
const LEAST_HOURS = 20;
/** Fewer days say nothing about a trend. */
export const LEAST_DAYS = 5;

/** The figure that is looked at: requests, or the tokens that they used. */
export type UseFigure = 'count' | 'used';

/** Rates per second, over the hours that have data. */
export interface Use {
  /** Rate of the busiest minute. */
  readonly peak: number;
  readonly average: number;
  /** The 95th percentile of the hours' peaks. */
  readonly p95: number;
  /** Number of hours that have data. */
  readonly hours: number;
  /** The hours of the highest peaks, as numbers of the ring's slots, busiest first. */
  readonly busiest: readonly number[];
}

const MOST_BUSIEST = 3;

/**
 * The busiest minute of an hour. While the first minute of a process goes on, or where it began in the middle of one,
 * that minute is not whole; and no hour's busiest minute is quieter than the hour.
 */
export function peakOf(slot: Slot, figure: UseFigure): number {
  const average = slot.spanMs > 0 ? (slot[figure] * 1000) / slot.spanMs : 0;
  return Math.max(figure === 'used' ? slot.peakUsed : slot.peak, average);
}

/** The use of these hours; undefined if there is no data. */
export function useOf(hours: readonly (Slot | undefined)[], figure: UseFigure): Use | undefined {
  const known = hours.filter((slot) => slot !== undefined);
  if (known.length === 0) return undefined;
  const peaks = known.map((slot) => peakOf(slot, figure)).sort((a, b) => a - b);
  const seconds = known.reduce((sum, { spanMs }) => sum + spanMs / 1000, 0);
  const amount = known.reduce((sum, slot) => sum + slot[figure], 0);
  const byPeak = [...known].sort((a, b) => peakOf(b, figure) - peakOf(a, figure));
  return {
    peak: peaks.at(-1)!,
    average: seconds > 0 ? amount / seconds : 0,
    p95: peaks[Math.ceil(peaks.length * 0.95) - 1]!,
    hours: known.length,
    busiest: byPeak.slice(0, MOST_BUSIEST).map(({ slot }) => slot),
  };
}

/** The peak of each of the last days, oldest first, as they lie back from now; undefined where too much of the day is unknown. */
export function dailyPeaks(
  hours: Ring,
  nowMicros: number,
  figure: UseFigure,
): (number | undefined)[] {
  const slots = hours.last(nowMicros);
  const days = Math.floor(slots.length / HOURS_OF_DAY);
  return Array.from({ length: days }, (_, day) => {
    const end = slots.length - (days - 1 - day) * HOURS_OF_DAY;
    const known = slots.slice(end - HOURS_OF_DAY, end).filter((slot) => slot !== undefined);
    if (known.length < LEAST_HOURS) return undefined;
    return Math.max(...known.map((slot) => peakOf(slot, figure)));
  });
}

/** When a limit is reached if the trend goes on. */
export type Forecast =
  /** Too few days are known. */
  | { readonly kind: 'unknown'; readonly days: number; readonly needed: number }
  | { readonly kind: 'steady' }
  | {
      readonly kind: 'growing';
      /** Per second and day. */
      readonly perDay: number;
      /** Days until the capacity is reached; 0 if it is. */
      readonly daysLeft: number;
      /** Days by the steepest and the flattest of the middle half of the slopes; the later one is Infinity where some of them do not rise. */
      readonly earliest: number;
      readonly latest: number;
    };

/**
 * When daily peaks reach the capacity, if they go on as they did: by the median of the slopes between any two days (Theil
 * and Sen), which a single promo day hardly moves.
 */
export function forecast(peaks: readonly (number | undefined)[], capacity: number): Forecast {
  const points = peaks.flatMap((peak, day) => (peak === undefined ? [] : [{ day, peak }]));
  if (points.length < LEAST_DAYS) {
    return { kind: 'unknown', days: points.length, needed: LEAST_DAYS };
  }
  const slopes = points
    .flatMap((one, index) =>
      points.slice(index + 1).map((other) => (other.peak - one.peak) / (other.day - one.day)),
    )
    .sort((a, b) => a - b);
  const slope = quantile(slopes, 0.5);
  if (slope <= 0) return { kind: 'steady' };
  const levels = points.map(({ day, peak }) => peak - slope * day).sort((a, b) => a - b);
  const today = quantile(levels, 0.5) + slope * (peaks.length - 1);
  const left = Math.max(0, capacity - today);
  const daysBy = (by: number): number => (left === 0 ? 0 : by > 0 ? left / by : Infinity);
  return {
    kind: 'growing',
    perDay: slope,
    daysLeft: daysBy(slope),
    earliest: daysBy(quantile(slopes, 0.75)),
    latest: daysBy(quantile(slopes, 0.25)),
  };
}

/** The quantile of sorted values, interpolated between two of them. */
export function quantile(sorted: readonly number[], part: number): number {
  const place = (sorted.length - 1) * part;
  const below = Math.floor(place);
  const rest = place - below;
  const value = sorted[below]!;
  return rest === 0 ? value : value + (sorted[below + 1]! - value) * rest;
}
