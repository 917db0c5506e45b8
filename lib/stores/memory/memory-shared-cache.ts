import { LRUCache } from 'lru-cache';
import { type Clock } from '../../common/clock.js';
import { MOST_BYTES, unseal } from '../envelope.js';
import {
  type Envelope,
  type SealedEnvelope,
  type SharedCache,
  type SharedCacheStats,
} from '../shared-cache.js';

interface Entry {
  readonly text: string;
  readonly until: number;
}

const MOST_ENTRIES = 10_000;
const MOST_BYTES_IN_ALL = 64 * MOST_BYTES;

/** What a fleet of one process shares with itself; the embedded store's level 1. */
export class MemorySharedCache implements SharedCache {
  readonly reading = 0;
  private readonly entries = new LRUCache<string, Entry>({
    max: MOST_ENTRIES,
    maxSize: MOST_BYTES_IN_ALL,
  });
  private readonly counts = { hits: 0, misses: 0, unreadable: 0, stored: 0, tooBig: 0 };

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  get(key: string): Promise<Envelope | undefined> {
    const entry = this.entries.get(key);
    const isHit = entry !== undefined && this.clock.now() < entry.until;
    this.counts[isHit ? 'hits' : 'misses']++;
    return Promise.resolve(isHit ? unseal(entry.text) : undefined);
  }

  set(key: string, sealed: SealedEnvelope, ttlMs: number): boolean {
    if (sealed.bytes > MOST_BYTES) {
      this.counts.tooBig++;
      return false;
    }
    const entry = { text: sealed.text, until: this.clock.now() + ttlMs * 1000 };
    this.entries.set(key, entry, { size: sealed.bytes + key.length });
    this.counts.stored++;
    return true;
  }

  stats(): SharedCacheStats {
    return { ...this.counts, dropped: 0, failedWrites: 0, strayReplies: 0 };
  }

  close(): void {
    this.entries.clear();
  }
}
