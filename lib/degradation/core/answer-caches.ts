import { type Clock } from '../../common/clock.js';
import { Lru } from '../../common/lru.js';
import { isStrayPromise } from '../../common/promises.js';
import { MOST_BYTES, seal, unseal } from '../../stores/envelope.js';
import {
  type Envelope,
  type SchemaVersion,
  type SharedCache,
  type SharedCacheStats,
} from '../../stores/shared-cache.js';
import { type AnswerStore, type FallbackLevels, type WarmUpReport } from './contract.js';
import { type DegradationSettings } from './options.js';
import { isPlainData } from './plain-data.js';
import { ProcessCache } from './process-cache.js';
import { SharedLevel, type SharedLevelStats } from './shared-level.js';

/** The entry of a cache for a request. */
export interface Cached {
  readonly value: unknown;
  readonly ageMs: number;
  readonly ttlMs: number;
}

/** Counts of the answers that the caches hold, and of those they did not keep. */
export interface AnswerCacheStats {
  readonly shared: (SharedCacheStats & SharedLevelStats) | undefined;
  readonly process: {
    readonly entries: number;
    readonly bytes: number;
    readonly hits: number;
    readonly misses: number;
  };
  readonly stored: number;
  /** Answers that were not kept: larger than 1 MiB, not JSON or too deep, or instances of classes. */
  readonly refused: {
    readonly tooBig: number;
    readonly notJson: number;
    readonly classes: number;
    /** The caller has shown credentials, and has no name. Of those that would have been kept else. */
    readonly credentials: number;
  };
  /** Entries that were found and not taken: of another version or sort, too old or of the future, or not accepted. */
  readonly rejected: {
    readonly version: number;
    readonly kind: number;
    readonly age: number;
    readonly body: number;
  };
}

const DEFAULT_VERSION: SchemaVersion = 1;
const DEFAULT_KIND = 'json';
const NEVER = -Infinity;
/** How far the clocks of two processes may be apart. */
const MOST_SKEW_MS = 5000;

/**
 * Levels 1 and 2: what normal answers fill, and what fallbacks read. Where there is no store to share, level 1
 * is what level 2 has of the last seconds: a second copy would tell nobody more.
 */
export class AnswerCaches implements AnswerStore {
  private readonly shared: SharedLevel | undefined;
  private readonly process: ProcessCache;
  /** When an answer to a key was last not kept, as it would be again, or stored where level 2 has nothing of it. */
  private written: Lru<number>;
  private stored = 0;
  private readonly notKept = { tooBig: 0, notJson: 0, classes: 0, credentials: 0 };
  private readonly rejected = { version: 0, kind: 0, age: 0, body: 0 };
  private readonly local = { hits: 0, misses: 0 };

  constructor(
    private figures: DegradationSettings,
    private readonly clock: Clock,
    shared?: SharedCache,
  ) {
    this.shared = shared && new SharedLevel(shared, clock);
    this.process = new ProcessCache(figures.maxEntries, figures.maxBytes);
    this.written = new Lru(figures.maxEntries);
  }

  /** True while the shared cache does not answer. */
  get sharedIsAway(): boolean {
    return this.shared?.isAway ?? false;
  }

  isDue(levels: FallbackLevels, key: string): boolean {
    const ttlMs = this.hasShared(levels) ? this.ttl1(levels) : this.ttl2(levels);
    if (ttlMs === 0) return false;
    const at = Math.max(this.process.storedAt(key) ?? NEVER, this.written.get(key) ?? NEVER);
    return this.clock.now() - at >= ttlMs * this.figures.refreshAfter * 1000;
  }

  store(levels: FallbackLevels, key: string, body: unknown): boolean {
    return this.put(levels, key, body) !== undefined;
  }

  /** A warm-up waits for each write: many at once would be more than a connection takes. */
  warmUp(
    levels: FallbackLevels,
    keys: Iterable<string> | AsyncIterable<string>,
    load: (key: string) => unknown,
    failed?: (error: unknown) => void,
  ): Promise<WarmUpReport> {
    const store = (key: string, body: unknown) => this.put(levels, key, body) ?? false;
    return warmUp(keys, load, store, failed);
  }

  hasShared(levels: FallbackLevels): boolean {
    return this.ttl1(levels) > 0;
  }

  /** Level 1, within the budget. */
  async readShared(
    levels: FallbackLevels,
    key: string,
    budgetMs: number,
  ): Promise<Cached | undefined> {
    if (this.shared === undefined) return this.readOwn(levels, key, this.ttl1(levels));
    const { level1TimeoutMs, maxReads } = this.figures;
    const timeoutMs = level1TimeoutMs;
    const budget = Math.min(budgetMs, timeoutMs);
    const envelope = await this.shared.read(key, budget, timeoutMs, maxReads);
    if (envelope === undefined) return undefined;
    const ageMs = this.clock.epochMs(this.clock.now()) - envelope.t;
    // An entry with a time in the future would be young for as long as its writer likes.
    if (ageMs < -MOST_SKEW_MS) return this.reject('age');
    return this.accept(levels, envelope, Math.max(0, ageMs), this.ttl1(levels));
  }

  /** Level 2, at once. */
  readProcess(levels: FallbackLevels, key: string): Cached | undefined {
    const cached = this.readOwn(levels, key, this.ttl2(levels));
    if (cached === undefined) this.local.misses++;
    return cached;
  }

  /** Settings that were checked: the result puts them into force, and cannot fail. */
  prepare(figures: DegradationSettings): () => void {
    return () => {
      const { maxEntries } = this.figures;
      this.figures = figures;
      this.process.resize(figures.maxEntries, figures.maxBytes);
      if (figures.maxEntries !== maxEntries) {
        this.written = new Lru(figures.maxEntries);
      }
    };
  }

  stats(): AnswerCacheStats {
    const { shared, process, local, stored } = this;
    return {
      shared: shared && { ...shared.cache.stats(), ...shared.stats() },
      process: { entries: process.size, bytes: process.bytes, ...local },
      stored,
      refused: { ...this.notKept },
      rejected: { ...this.rejected },
    };
  }

  close(): void {
    this.shared?.cache.close();
    this.process.clear();
  }

  /** Whether the shared cache has it as well, or will have; undefined if the answer is not kept. */
  private put(
    levels: FallbackLevels,
    key: string,
    body: unknown,
  ): boolean | Promise<boolean> | undefined {
    const now = this.clock.now();
    const { schemaVersion: v = DEFAULT_VERSION, kind = DEFAULT_KIND } = levels;
    const sealed = seal({ v, t: this.clock.epochMs(now), kind, body });
    if (sealed === undefined) return this.countRefused('notJson', key);
    if (sealed.bytes > MOST_BYTES) return this.countRefused('tooBig', key);
    if (levels.revive === undefined && !isPlainData(body)) return this.countRefused('classes', key);
    this.stored++;
    // Named fields: of what is spread and added to, V8 gives each a shape of its own, of 260 bytes.
    const entry = { text: sealed.text, at: now };
    const isShared = this.shared !== undefined && this.hasShared(levels);
    const isOwn = this.ttl2(levels) > 0 || !isShared;
    if (!isOwn || !this.process.set(key, entry)) this.written.set(key, now);
    return isShared ? this.shared.cache.set(key, sealed, this.ttl1(levels)) : true;
  }

  private readOwn(levels: FallbackLevels, key: string, ttlMs: number): Cached | undefined {
    const entry = ttlMs === 0 ? undefined : this.process.get(key);
    const envelope = entry && unseal(entry.text);
    if (envelope === undefined) return undefined;
    const cached = this.accept(levels, envelope, (this.clock.now() - entry!.at) / 1000, ttlMs);
    if (cached !== undefined) this.local.hits++;
    return cached;
  }

  private accept(
    levels: FallbackLevels,
    { v, kind, body }: Envelope,
    ageMs: number,
    ttlMs: number,
  ): Cached | undefined {
    if (v !== (levels.schemaVersion ?? DEFAULT_VERSION)) return this.reject('version');
    if (kind !== (levels.kind ?? DEFAULT_KIND)) return this.reject('kind');
    if (ageMs > ttlMs) return this.reject('age');
    try {
      if (levels.accepts?.(body) === false) return this.reject('body');
      const value = levels.revive === undefined ? body : levels.revive(body);
      if (isStrayPromise(value)) return this.reject('body');
      return { value, ageMs, ttlMs: ttlMs - ageMs };
    } catch {
      return this.reject('body');
    }
  }

  private ttl1({ resource, level1 }: FallbackLevels): number {
    if (level1 === false) return 0;
    const own = resource === undefined ? undefined : this.figures.resources.get(resource);
    return own?.level1TtlMs ?? (typeof level1 === 'number' ? level1 : this.figures.level1TtlMs);
  }

  private ttl2({ resource, level2 }: FallbackLevels): number {
    if (level2 === false) return 0;
    const own = resource === undefined ? undefined : this.figures.resources.get(resource);
    return own?.level2TtlMs ?? (typeof level2 === 'number' ? level2 : this.figures.level2TtlMs);
  }

  /** An answer that is not even looked at. */
  skipUnnamed(): void {
    this.notKept.credentials++;
  }

  private countRefused(why: keyof AnswerCacheStats['refused'], key: string): undefined {
    this.notKept[why]++;
    this.written.set(key, this.clock.now());
    return undefined;
  }

  private reject(why: keyof AnswerCacheStats['rejected']): undefined {
    this.rejected[why]++;
    return undefined;
  }
}

/** Loads at a time: a warm-up must not be the overload that it is meant for. */
const AT_ONCE = 8;

/**
 * Loads every key and stores what came. One that fails keeps none of the others, and neither does a list
 * that breaks off. `failed` is called for both.
 */
export async function warmUp(
  keys: Iterable<string> | AsyncIterable<string>,
  load: (key: string) => unknown,
  store: (key: string, body: unknown) => boolean | Promise<boolean>,
  failed: (error: unknown) => void = () => {},
): Promise<WarmUpReport> {
  const report = { loaded: 0, skipped: 0, failed: 0 };
  const rest = unique(keys);
  const work = async (): Promise<void> => {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      const key = next.value;
      try {
        const body = await load(key);
        const isStored = body !== undefined && (await store(key, body));
        report[isStored ? 'loaded' : 'skipped']++;
      } catch (error) {
        report.failed++;
        failed(error);
      }
    }
  };
  const broke = (error: unknown): void => {
    report.failed++;
    failed(error);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, () => work().catch(broke)));
  return report;
}

/** Several may ask an async generator at once: they are answered in their turn. */
async function* unique(keys: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  const seen = new Set<string>();
  for await (const key of keys) {
    if (seen.has(key)) continue;
    seen.add(key);
    yield key;
  }
}
