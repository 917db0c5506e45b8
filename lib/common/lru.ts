/**
 * Values by key, of which the one that was not used for longest goes first when there are too many, or when they
 * take more than `maxSize` together. A `Map` remembers the order in which keys were put in, so a use is
 * to take a key out and put it in again.
 */
export class Lru<V> {
  private readonly entries = new Map<string, { readonly value: V; readonly size: number }>();
  private taken = 0;

  constructor(
    private readonly max: number,
    private readonly maxSize = Infinity,
    private readonly sizeOf: (value: V, key: string) => number = () => 0,
  ) {}

  get count(): number {
    return this.entries.size;
  }

  /** The size of all values together. */
  get size(): number {
    return this.taken;
  }

  get(key: string): V | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  /** The value, without counting as a use of it. */
  peek(key: string): V | undefined {
    return this.entries.get(key)?.value;
  }

  /** False for a value that is larger than all of them may be together: it is not kept, nor what was there. */
  set(key: string, value: V): boolean {
    this.delete(key);
    const size = this.sizeOf(value, key);
    if (size > this.maxSize) return false;
    this.entries.set(key, { value, size });
    this.taken += size;
    while (this.entries.size > this.max || this.taken > this.maxSize) this.dropOldest();
    return true;
  }

  delete(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.taken -= entry.size;
  }

  clear(): void {
    this.entries.clear();
    this.taken = 0;
  }

  /** From the key that was not used for longest to the one that was used last. */
  keys(): IterableIterator<string> {
    return this.entries.keys();
  }

  private dropOldest(): void {
    for (const key of this.entries.keys()) return this.delete(key);
  }
}
