import type { Cluster, Redis } from 'ioredis';
import { type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import { MOST_BYTES, unseal } from '../envelope.js';
import {
  type Envelope,
  type SealedEnvelope,
  type SharedCache,
  type SharedCacheStats,
} from '../shared-cache.js';
import { inTime } from './in-time.js';
import { RedisKeys } from './keys.js';

export interface RedisSharedCacheSettings {
  /** Large answers hold up what is behind them, so not the connection that decisions use. */
  readonly client: Redis | Cluster;
  readonly prefix: string;
  /** The client is closed with the cache. */
  readonly isOwned: boolean;
  /** Writes that are on their way at once; further ones are dropped. */
  readonly maxWrites?: number;
}

const MOST_WRITES = 100;

/** Answers in Redis, each under a key of its own that ends with its time. */
export class RedisSharedCache implements SharedCache {
  reading = 0;
  private readonly names: RedisKeys;
  private readonly maxWrites: number;
  private writing = 0;
  private readonly counts = {
    ...{ hits: 0, misses: 0, unreadable: 0 },
    ...{ stored: 0, tooBig: 0, dropped: 0, failedWrites: 0 },
  };

  constructor(
    private readonly settings: RedisSharedCacheSettings,
    private readonly clock: Pick<Clock, 'after' | 'soon'>,
  ) {
    this.names = new RedisKeys(settings.prefix);
    this.maxWrites = settings.maxWrites ?? MOST_WRITES;
  }

  async get(key: string, timeoutMs: number): Promise<Envelope | undefined> {
    const { client } = this.settings;
    if (client.status !== 'ready') throw new StoreUnavailableError('no connection');
    const text = await inTime(this.read(key), timeoutMs, this.clock);
    if (text === '') {
      this.counts.misses++;
      return undefined;
    }
    const envelope = text.length > MOST_BYTES ? undefined : unseal(text);
    this.counts[envelope === undefined ? 'unreadable' : 'hits']++;
    return envelope;
  }

  set(key: string, { text, bytes }: SealedEnvelope, ttlMs: number): boolean {
    if (bytes > MOST_BYTES) {
      this.counts.tooBig++;
      return false;
    }
    const { client } = this.settings;
    if (this.writing >= this.maxWrites || client.status !== 'ready') {
      this.counts.dropped++;
      return false;
    }
    this.writing++;
    const written = client.set(this.names.answer(key), text, 'PX', Math.ceil(ttlMs));
    void written
      .then(
        () => this.counts.stored++,
        () => this.counts.failedWrites++,
      )
      .finally(() => this.writing--);
    return true;
  }

  stats(): SharedCacheStats {
    return { ...this.counts };
  }

  close(): void {
    if (this.settings.isOwned) this.settings.client.disconnect();
  }

  /** Empty if there is nothing. No more is read than can be of use, whatever somebody put there. */
  private async read(key: string): Promise<string> {
    this.reading++;
    try {
      return await this.settings.client.getrange(this.names.answer(key), 0, MOST_BYTES);
    } catch (error) {
      // A list or a hash that somebody put there is not the store's failure.
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return NO_ENVELOPE;
      throw error;
    } finally {
      this.reading--;
    }
  }
}

const NO_ENVELOPE = 'null';

/**
 * A connection like the client's, for answers only. It fails at once while there is none, and says
 * nothing: whoever reads finds out.
 */
export function connectionBeside(client: Redis | Cluster): Redis | Cluster {
  const failFast = {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    lazyConnect: false,
  };
  const beside =
    'nodes' in client
      ? client.duplicate([], { redisOptions: { ...client.options.redisOptions, ...failFast } })
      : client.duplicate(failFast);
  beside.on('error', () => {});
  return beside;
}
