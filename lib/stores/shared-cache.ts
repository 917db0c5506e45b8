/** Which form of an answer a cache holds. A route that changes its form names another version. */
export type SchemaVersion = string | number;

/** An answer as caches keep it. */
export interface Envelope {
  readonly v: SchemaVersion;
  /** When it was stored: wall-clock milliseconds. */
  readonly t: number;
  /** The sort of the answer. A reader that expects another sort does not take it. */
  readonly kind: string;
  readonly body: unknown;
}

/** An envelope as text, made once for all caches that take it. */
export interface SealedEnvelope {
  readonly text: string;
  readonly bytes: number;
}

/** How a cache fared so far. */
export interface SharedCacheStats {
  readonly hits: number;
  readonly misses: number;
  /** Entries that were no envelopes of ours. */
  readonly unreadable: number;
  readonly stored: number;
  /** Larger than the store takes. */
  readonly tooBig: number;
  /** Not written because enough writes were on their way, or there was no connection. */
  readonly dropped: number;
  readonly failedWrites: number;
  /** Replies of the store to another call, or to none. */
  readonly strayReplies: number;
}

/** Answers that a fleet shares. */
export interface SharedCache {
  /**
   * The answer that is stored under the key; undefined where there is none of use. Rejects with a
   * StoreUnavailableError if the store does not answer in time.
   */
  get(key: string, timeoutMs: number): Promise<Envelope | undefined>;
  /**
   * Stores; nobody has to wait for it, and it neither throws nor rejects. False if it is not kept, a
   * promise where it is known only later whether it is there.
   */
  set(key: string, sealed: SealedEnvelope, ttlMs: number): boolean | Promise<boolean>;
  /** Reads that still occupy the store, those without a waiting caller included. */
  readonly reading: number;
  stats(): SharedCacheStats;
  close(): void;
}
