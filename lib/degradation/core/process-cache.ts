import { Lru } from '../../common/lru.js';

/** An answer as the process keeps it: text, which no request can change for another. */
export interface ProcessEntry {
  readonly text: string;
  /** When it was stored, on the monotonic clock. */
  readonly at: number;
}

/** The bytes of an entry beside its text, roughly. */
const OVERHEAD_BYTES = 200;

/** Level 2: bounded in entries and in bytes, so that keys of any number do not fill the memory. */
export class ProcessCache {
  private entries: Lru<ProcessEntry>;

  constructor(
    private maxEntries: number,
    private maxBytes: number,
  ) {
    this.entries = cacheOf(maxEntries, maxBytes);
  }

  get size(): number {
    return this.entries.count;
  }

  get bytes(): number {
    return this.entries.size;
  }

  /** However old it is: what is too old for one level is not for another. */
  get(key: string): ProcessEntry | undefined {
    return this.entries.get(key);
  }

  /** When the answer was stored, if it is still there. That does not count as a use of it. */
  storedAt(key: string): number | undefined {
    return this.entries.peek(key)?.at;
  }

  /** False for an answer that is more than all of them may take. */
  set(key: string, entry: ProcessEntry): boolean {
    return this.entries.set(key, entry);
  }

  /** Keeps of what is there the newest that fits. */
  resize(maxEntries: number, maxBytes: number): void {
    if (maxEntries === this.maxEntries && maxBytes === this.maxBytes) return;
    const before = this.entries;
    this.maxEntries = maxEntries;
    this.maxBytes = maxBytes;
    this.entries = cacheOf(maxEntries, maxBytes);
    for (const key of before.keys()) {
      const entry = before.peek(key);
      if (entry !== undefined) this.entries.set(key, entry);
    }
  }

  clear(): void {
    this.entries.clear();
  }
}

function cacheOf(maxEntries: number, maxBytes: number): Lru<ProcessEntry> {
  const bytesOf = ({ text }: ProcessEntry, key: string): number =>
    Buffer.byteLength(text) + key.length + OVERHEAD_BYTES;
  return new Lru(maxEntries, maxBytes, bytesOf);
}
