import { peakOf } from './capacity.js';
import { type Ring, type Slot } from './rings.js';
import { type Horizon } from './series.js';

/**
 * A series at one horizon, in columns: a value for each slot of time, oldest first; null where there is no data, which is
 * another thing than 0. Rates are per second.
 */
export interface SeriesHistory {
  readonly name: string;
  readonly horizon: Horizon;
  /** Length of a slot. */
  readonly stepMs: number;
  /** The beginning of the first slot, in wall-clock milliseconds. */
  readonly startMs: number;
  readonly rate: readonly (number | null)[];
  readonly denied: readonly (number | null)[];
  readonly errors: readonly (number | null)[];
  /** Answers of all degrade levels. */
  readonly degraded: readonly (number | null)[];
  readonly used: readonly (number | null)[];
  readonly p50Ms: readonly (number | null)[];
  readonly p99Ms: readonly (number | null)[];
  /** The busiest second of a minute, the busiest minute of an hour. */
  readonly peak: readonly (number | null)[];
}

/**
 * The slots of a ring, the last one being that which goes on. `epochMs` is the wall-clock time of the instant `nowMicros`
 * on the ring's clock.
 */
export function historyOf(
  {
    name,
    horizon,
    ring,
  }: { readonly name: string; readonly horizon: Horizon; readonly ring: Ring },
  nowMicros: number,
  epochMs: number,
): SeriesHistory {
  // Seconds come one at a time, and the one that goes on is empty.
  const atMicros = horizon === 'seconds' ? nowMicros - ring.sizeMs * 1000 : nowMicros;
  const slots = ring.last(atMicros);
  const firstMicros = (ring.slotAt(atMicros) - slots.length + 1) * ring.sizeMs * 1000;
  const column = (of: (slot: Slot) => number): (number | null)[] =>
    slots.map((slot) => {
      const value = slot === undefined ? NaN : of(slot);
      return Number.isFinite(value) ? rounded(value) : null;
    });
  const perSecond = (count: number, { spanMs }: Slot): number =>
    spanMs > 0 ? (count * 1000) / spanMs : 0;
  return {
    ...{ name, horizon, stepMs: ring.sizeMs },
    startMs: Math.round(epochMs - (nowMicros - firstMicros) / 1000),
    rate: column((slot) => perSecond(slot.count, slot)),
    denied: column((slot) => perSecond(slot.denied, slot)),
    errors: column((slot) => perSecond(slot.errors, slot)),
    degraded: column((slot) => perSecond(degradedOf(slot), slot)),
    used: column((slot) => perSecond(slot.used, slot)),
    p50Ms: column(({ p50 }) => p50 / 1000),
    p99Ms: column(({ p99 }) => p99 / 1000),
    peak: column((slot) => peakOf(slot, 'count')),
  };
}

const degradedOf = ({ degraded1, degraded2, degraded3, degraded4 }: Slot): number =>
  degraded1 + degraded2 + degraded3 + degraded4;

const rounded = (value: number): number => Math.round(value * 1000) / 1000;
