import { algorithmOf } from '../../algorithms/algorithm-of.js';
import { Outcome, type Algorithm } from '../../algorithms/algorithm.js';
import { type Limit, LimitChange } from '../../algorithms/limit.js';
import { ownText } from '../../common/ids.js';
import { OverflowTable } from './overflow-table.js';

/** Room for keys, shared by all tables of a store. */
export interface KeyBudget {
  /** Asks for room for one more key, which may mean that another is forgotten. */
  claim(now: number): boolean;
  release(): void;
}

/** For a table that is no longer, or never was, one of a store's. */
const UNCOUNTED: KeyBudget = { claim: () => true, release: () => {} };

export const PAGE_BITS = 12;
export const PAGE_KEYS = 1 << PAGE_BITS;
/** The first page begins so small, and doubles: there may be many tables of a few keys each. */
const FIRST_KEYS = 64;

/**
 * The buckets of one limit, by key.
 *
 * State lives in pages of plain numbers and the map holds only where; so a key costs its string,
 * one map entry and a few numbers, nothing is copied when the table grows, and the collector has
 * nothing to follow. A bucket is forgotten only when it has recovered: forgetting frees no tokens.
 */
export class BucketTable {
  private readonly algorithm: Algorithm;
  /** Numbers of a bucket. */
  width: number;
  private readonly slots = new Map<string, number>();
  pages: Float64Array[] = [];
  private readonly vacant: number[] = [];
  private used = 0;
  private hand: MapIterator<[string, number]>;
  private overflow: OverflowTable | undefined;
  /** Where the bucket that was just found lives. */
  private page: Float64Array;
  private at = 0;
  /** An unused bucket, which answers for keys that are not there. */
  private unused: Float64Array;
  /** How often a key had to share a bucket because the table was full. */
  overflowed = 0;

  constructor(
    public limit: Limit,
    private budget: KeyBudget,
    private readonly overflowBuckets?: number,
  ) {
    this.algorithm = algorithmOf(limit.algorithm);
    this.width = this.algorithm.width(limit);
    this.unused = new Float64Array(this.width);
    this.page = this.unused;
    this.hand = this.slots.entries();
  }

  /** A table that takes no room from others, for decisions of which nothing need remain. */
  static uncounted(limit: Limit): BucketTable {
    return new BucketTable(limit, UNCOUNTED);
  }

  get size(): number {
    return this.slots.size;
  }

  /** Takes `cost` at the instant of the outcome, if the bucket has it, and fills the outcome in. */
  take(key: string, cost: number, outcome: Outcome): void {
    const slot = this.slots.get(key);
    if (slot === undefined) return this.takeFirst(key, cost, outcome);
    this.takeAt(this.pageOf(slot), this.offsetOf(slot), cost, outcome);
  }

  /** Where the bucket of a key is, for whoever reads and writes its numbers at once; undefined if it has none yet. */
  slotOf(key: string): number | undefined {
    return this.slots.get(key);
  }

  pageOf(slot: number): Float64Array {
    return this.pages[slot >>> PAGE_BITS]!;
  }

  offsetOf(slot: number): number {
    return (slot & (PAGE_KEYS - 1)) * this.width;
  }

  /** Says whether the bucket has `cost`, for whoever takes from several tables or from none. */
  measureAt(slot: number, cost: number, outcome: Outcome): void {
    const { algorithm, limit } = this;
    algorithm.measure(limit, this.pageOf(slot), this.offsetOf(slot), cost, outcome);
  }

  peek(key: string, cost: number, outcome: Outcome): void {
    this.findOrUnused(key, outcome.nowMicros);
    this.algorithm.measure(this.limit, this.page, this.at, cost, outcome);
  }

  /** Tokens that the bucket of a key has less than when it is full. */
  missing(key: string, now: number): number {
    OUTCOME.nowMicros = now;
    this.peek(key, 0, OUTCOME);
    return Math.ceil((this.limit.full - OUTCOME.level) / this.limit.perToken);
  }

  refund(key: string, cost: number, now: number, takenAt?: number): void {
    if (!this.find(key) && !this.findOverflow(key)) return;
    this.algorithm.refund(this.limit, this.page, this.at, now, cost, takenAt);
  }

  /** A bucket that others share is left as it is: what they used is not this key's to forget. */
  reset(key: string): void {
    const slot = this.slots.get(key);
    if (slot !== undefined) this.forget(key, slot);
  }

  /**
   * Other figures of the same algorithm and shape from now on. Tokens are carried over one by one,
   * so a change gives nothing away, neither of rate nor of burst.
   */
  changeLimit(limit: Limit): void {
    const factor = limit.perToken / this.limit.perToken;
    for (const slot of this.slots.values()) {
      this.locate(slot);
      this.algorithm.rescale(this.limit, limit, this.page, this.at, factor);
    }
    const shared = this.overflow?.state;
    for (let at = 0; shared !== undefined && at < shared.length; at += this.width) {
      this.algorithm.rescale(this.limit, limit, shared, at, factor);
    }
    this.limit = limit;
  }

  /**
   * Another limit of the same algorithm from now on. Each bucket is settled under the old one and
   * is then as full as it was, whatever its key has used.
   */
  replaceLimit(limit: Limit, now: number): void {
    const change = new LimitChange(this.limit, limit);
    const width = this.algorithm.width(limit);
    const pages =
      width === this.width
        ? this.pages
        : this.pages.map((page) => new Float64Array((page.length / this.width) * width));
    for (const slot of this.slots.values()) {
      this.locate(slot);
      const into = pages[slot >>> PAGE_BITS]!;
      const intoAt = (slot & (PAGE_KEYS - 1)) * width;
      this.algorithm.carry(change, this.page, this.at, into, intoAt, now);
    }
    this.overflow?.carry(change, now);
    this.limit = limit;
    if (width === this.width) return;
    this.width = width;
    this.pages = pages;
    this.unused = new Float64Array(width);
    this.page = this.unused;
    this.at = 0;
  }

  /** True if every bucket is as full as a new one. */
  hasRecovered(now: number): boolean {
    const { algorithm, limit } = this;
    for (const slot of this.slots.values()) {
      this.locate(slot);
      if (!algorithm.recovered(limit, this.page, this.at, now)) return false;
    }
    return this.overflow?.hasRecovered(limit, now) ?? true;
  }

  /** Forgets all keys and gives their room to others. Late calls do no harm. */
  release(): void {
    for (let keys = this.slots.size; keys > 0; keys--) this.budget.release();
    this.budget = UNCOUNTED;
    this.slots.clear();
    this.hand = this.slots.entries();
    this.pages = [];
    this.vacant.length = 0;
    this.used = 0;
    this.overflow = undefined;
  }

  /**
   * Looks at the next `steps` buckets and forgets those that have recovered and were not used for
   * longer than `idleMicros`. Stops after `most`. Returns how many it forgot.
   */
  sweep(steps: number, most: number, idleMicros: number, now: number): number {
    let forgotten = 0;
    for (let step = 0; step < steps && forgotten < most; step++) {
      let next = this.hand.next();
      if (next.done) {
        this.hand = this.slots.entries();
        next = this.hand.next();
        if (next.done) break;
      }
      const [key, slot] = next.value;
      this.locate(slot);
      const { algorithm, limit, page, at } = this;
      if (now - algorithm.lastUse(limit, page, at) <= idleMicros) continue;
      if (!algorithm.recovered(limit, page, at, now)) continue;
      this.forget(key, slot);
      forgotten++;
    }
    return forgotten;
  }

  private takeFirst(key: string, cost: number, outcome: Outcome): void {
    this.add(key, outcome.nowMicros);
    this.takeAt(this.page, this.at, cost, outcome);
  }

  private takeAt(page: Float64Array, at: number, cost: number, outcome: Outcome): void {
    const { algorithm, limit } = this;
    algorithm.measure(limit, page, at, cost, outcome);
    if (outcome.allowed) algorithm.commit(limit, page, at, cost, outcome);
  }

  private find(key: string): boolean {
    const slot = this.slots.get(key);
    if (slot === undefined) return false;
    this.locate(slot);
    return true;
  }

  private locate(slot: number): void {
    this.page = this.pageOf(slot);
    this.at = this.offsetOf(slot);
  }

  private findOverflow(key: string): boolean {
    if (this.overflow === undefined) return false;
    this.page = this.overflow.state;
    this.at = this.overflow.offsetOf(key);
    return true;
  }

  private findOrUnused(key: string, now: number): void {
    if (this.find(key) || this.findOverflow(key)) return;
    this.page = this.unused;
    this.at = 0;
    this.algorithm.start(this.limit, this.unused, 0, now);
  }

  /** A key that may have shared a bucket goes on from there, so that moving out frees no tokens. */
  private add(key: string, now: number): void {
    if (!this.budget.claim(now)) {
      this.overflowed++;
      this.overflow ??= new OverflowTable(this.algorithm, this.limit, now, this.overflowBuckets);
      this.findOverflow(key);
      return;
    }
    const slot = this.vacant.pop() ?? this.used++;
    this.makeRoomAt(slot);
    this.slots.set(ownText(key), slot);
    this.locate(slot);
    if (this.overflow === undefined) this.algorithm.start(this.limit, this.page, this.at, now);
    else this.page.set(this.overflow.bucketOf(key), this.at);
  }

  private makeRoomAt(slot: number): void {
    const number = slot >>> PAGE_BITS;
    const page = this.pages[number];
    if (page === undefined) {
      const keys = number === 0 ? FIRST_KEYS : PAGE_KEYS;
      this.pages.push(new Float64Array(keys * this.width));
    } else if ((slot & (PAGE_KEYS - 1)) * this.width >= page.length) {
      const larger = new Float64Array(2 * page.length);
      larger.set(page);
      this.pages[number] = larger;
    }
  }

  private forget(key: string, slot: number): void {
    this.slots.delete(key);
    this.vacant.push(slot);
    this.budget.release();
  }
}

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();
