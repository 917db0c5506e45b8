/** The head of a queue moves on; what lies behind it is cut off when it has grown to this. */
const CUT_AT = 1024;

/** First in, first out, with the instant at which each came. Nothing is moved but when it is cut. */
class TierQueue<T> {
  private items: (T | undefined)[] = [];
  private since: number[] = [];
  private head = 0;

  get size(): number {
    return this.items.length - this.head;
  }

  push(item: T, now: number): void {
    this.items.push(item);
    this.since.push(now);
  }

  /** When the first of them came. */
  firstSince(): number {
    return this.since[this.head]!;
  }

  first(): T {
    return this.items[this.head]!;
  }

  shift(): T {
    const item = this.items[this.head]!;
    this.items[this.head++] = undefined;
    if (this.head === this.items.length) this.clear();
    else if (this.head >= CUT_AT) this.cut();
    return item;
  }

  private clear(): void {
    this.items = [];
    this.since = [];
    this.head = 0;
  }

  private cut(): void {
    this.items = this.items.slice(this.head);
    this.since = this.since.slice(this.head);
    this.head = 0;
  }
}

/** The work that waits, by tier; 0 is the highest. */
export class TierQueues<T> {
  private readonly queues: readonly TierQueue<T>[];
  private waiting = 0;

  constructor(readonly tiers: number) {
    this.queues = Array.from({ length: tiers }, () => new TierQueue<T>());
  }

  /** Entries of all tiers together. */
  get size(): number {
    return this.waiting;
  }

  sizeOf(tier: number): number {
    return this.queues[tier]!.size;
  }

  /** The work that goes before a newcomer of this tier: all of its own and of higher ones. */
  ahead(tier: number): number {
    let ahead = 0;
    for (let i = 0; i <= tier; i++) ahead += this.queues[i]!.size;
    return ahead;
  }

  push(tier: number, item: T, now: number): void {
    this.waiting++;
    this.queues[tier]!.push(item, now);
  }

  /** The highest tier that has one; -1 if nothing waits. */
  highest(): number {
    for (let tier = 0; tier < this.tiers; tier++) if (this.queues[tier]!.size > 0) return tier;
    return -1;
  }

  firstSince(tier: number): number {
    return this.queues[tier]!.firstSince();
  }

  first(tier: number): T {
    return this.queues[tier]!.first();
  }

  /** Takes the first of a tier that is not empty. */
  shift(tier: number): T {
    this.waiting--;
    return this.queues[tier]!.shift();
  }
}
