import { type Clock } from './clock.js';

const MICROS_BETWEEN_LINES = 60_000_000;

interface Count {
  total: number;
  /** The count that the log has so far, and the instant of its latest line. */
  told: number;
  toldAtMicros: number;
}

/**
 * Counts by name, for logs that must not grow with the events: each name is worth one line a
 * minute, however often it is counted. The names have to be few.
 */
export class Tally {
  private readonly counts = new Map<string, Count>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  get total(): number {
    let total = 0;
    for (const count of this.counts.values()) total += count.total;
    return total;
  }

  byName(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.counts].map(([name, { total }]) => [name, total]));
  }

  /** The number of events that the next line counts; undefined if none is due. */
  add(name: string): number | undefined {
    const nowMicros = this.clock.now();
    let count = this.counts.get(name);
    if (count === undefined) {
      count = { total: 0, told: 0, toldAtMicros: -Infinity };
      this.counts.set(name, count);
    }
    count.total++;
    if (nowMicros - count.toldAtMicros < MICROS_BETWEEN_LINES) return undefined;
    const untold = count.total - count.told;
    count.told = count.total;
    count.toldAtMicros = nowMicros;
    return untold;
  }
}
