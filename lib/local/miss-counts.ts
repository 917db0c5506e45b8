import { spread } from '../common/ids.js';

const CELLS = 1024;
const ALL_HASHES = 2 ** 32;

/**
 * Misses of a key within a span, counted in a table of fixed size: a million cold keys cost no more
 * than one hot one. Keys that meet in a cell count each other down, so that only one that comes
 * more often than all the others there gets ahead; a wrong count costs a lease that is not needed.
 */
export class MissCounts {
  private readonly hashes = new Uint32Array(CELLS);
  private readonly counts = new Float32Array(CELLS);
  private readonly spans = new Float64Array(CELLS);

  /** Misses of a span count half in the next one, and no longer after that. */
  constructor(private readonly spanMicros: number) {}

  /** Counts a miss, and returns the number of misses of the key. */
  add(key: string, now: number): number {
    const { hashes, counts } = this;
    const hash = spread(key, ALL_HASHES);
    const cell = hash % CELLS;
    this.age(cell, Math.floor(now / this.spanMicros));
    if (hashes[cell] !== hash) {
      if (counts[cell]! >= 1) {
        counts[cell]!--;
        return 0;
      }
      hashes[cell] = hash;
      counts[cell] = 0;
    }
    return ++counts[cell]!;
  }

  private age(cell: number, span: number): void {
    const passed = span - this.spans[cell]!;
    if (passed === 0) return;
    this.counts[cell] = passed === 1 ? this.counts[cell]! / 2 : 0;
    this.spans[cell] = span;
  }
}
