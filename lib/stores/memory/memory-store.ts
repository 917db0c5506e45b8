import { type Limit } from '../../algorithms/limit.js';
import { type Cancel, type Clock } from '../../common/clock.js';
import { BucketTable, type KeyBudget } from './bucket-table.js';

export interface MemoryStoreLimits {
  readonly maxKeys: number;
  /** A bucket is swept away once it has recovered and was not used for longer than this. */
  readonly idleTimeoutMs: number;
  /** How often such buckets are looked for. */
  readonly sweepIntervalMs?: number;
}

const SWEEP_INTERVAL_MS = 1000;
/** A large table is gone through in about so many sweeps, a small one in a single sweep. */
const SWEEPS_PER_ROUND = 60;
const LEAST_STEPS = 1000;
/** How many buckets are looked at to make room for one more; a few microseconds' worth. */
const SEARCH_STEPS = 128;

/**
 * The store that lives in the process. It answers at once, and is bounded: see `BucketTable` for
 * what may be forgotten, and `OverflowTable` for where keys go when nothing may.
 */
export class MemoryStore implements KeyBudget {
  private readonly tables: BucketTable[] = [];
  private readonly stopSweep: Cancel;
  private keys = 0;
  private searchFrom = 0;

  constructor(
    private readonly limits: MemoryStoreLimits,
    private readonly clock: Clock,
  ) {
    const { sweepIntervalMs = SWEEP_INTERVAL_MS } = limits;
    this.stopSweep = clock.every(sweepIntervalMs, () => this.sweep(clock.now()));
  }

  /** How many keys have a bucket of their own. */
  get size(): number {
    return this.keys;
  }

  /** With so many buckets for keys that find no room; by default as many as a policy has. */
  open(limit: Limit, overflowBuckets?: number): BucketTable {
    const table = new BucketTable(limit, this, overflowBuckets);
    this.tables.push(table);
    return table;
  }

  /** The limit is gone: its keys make room for others. */
  drop(table: BucketTable): void {
    const index = this.tables.indexOf(table);
    if (index >= 0) this.tables.splice(index, 1);
    table.release();
  }

  claim(now: number): boolean {
    if (this.keys >= this.limits.maxKeys && !this.makeRoom(now)) return false;
    this.keys++;
    return true;
  }

  release(): void {
    this.keys--;
  }

  close(): void {
    this.stopSweep();
  }

  /** One step of the steady clean-up. */
  sweep(now: number): void {
    const idleMicros = this.limits.idleTimeoutMs * 1000;
    for (const table of this.tables) {
      const share = Math.ceil(table.size / SWEEPS_PER_ROUND);
      const steps = Math.min(table.size, Math.max(share, LEAST_STEPS));
      table.sweep(steps, steps, idleMicros, now);
    }
  }

  private makeRoom(now: number): boolean {
    let steps = SEARCH_STEPS;
    for (let tried = 0; tried < this.tables.length && steps > 0; tried++) {
      const table = this.tables[this.searchFrom % this.tables.length]!;
      const share = Math.min(steps, table.size);
      if (table.sweep(share, 1, 0, now) > 0) return true;
      steps -= share;
      this.searchFrom++;
    }
    return false;
  }
}
