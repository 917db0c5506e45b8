import { type Algorithm } from '../../algorithms/algorithm.js';
import { type Limit, type LimitChange } from '../../algorithms/limit.js';
import { KeyedHash } from '../../common/keyed-hash.js';

/** Enough that strangers seldom meet, small enough (256 KiB for a token bucket) to be always had. */
export const OVERFLOW_BUCKETS = 16_384;

/**
 * Where keys go when the table is full and nothing in it may be forgotten: a fixed number of
 * buckets shared by hash. A shared bucket can only be stricter than an own one, so a flood of
 * made-up keys frees no tokens; and without the seed nobody can choose whose bucket to drain.
 */
export class OverflowTable {
  state: Float64Array;
  private readonly hash = new KeyedHash();
  private width: number;

  constructor(
    private readonly algorithm: Algorithm,
    limit: Limit,
    now: number,
    private readonly buckets = OVERFLOW_BUCKETS,
  ) {
    this.width = algorithm.width(limit);
    this.state = new Float64Array(buckets * this.width);
    for (let at = 0; at < this.state.length; at += this.width) {
      algorithm.start(limit, this.state, at, now);
    }
  }

  carry(change: LimitChange, now: number): void {
    const { algorithm, state } = this;
    const width = algorithm.width(change.to);
    const into = width === this.width ? state : new Float64Array(this.buckets * width);
    for (let bucket = 0; bucket < this.buckets; bucket++) {
      algorithm.carry(change, state, bucket * this.width, into, bucket * width, now);
    }
    this.state = into;
    this.width = width;
  }

  offsetOf(key: string): number {
    return (this.hash.of(key) % this.buckets) * this.width;
  }

  hasRecovered(limit: Limit, now: number): boolean {
    for (let at = 0; at < this.state.length; at += this.width) {
      if (!this.algorithm.recovered(limit, this.state, at, now)) return false;
    }
    return true;
  }

  bucketOf(key: string): Float64Array {
    const at = this.offsetOf(key);
    return this.state.subarray(at, at + this.width);
  }
}
