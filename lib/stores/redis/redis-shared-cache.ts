import type { Cluster, Redis } from 'ioredis';
import { type Cancel, type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import { digestOf } from '../../common/ids.js';
import { MOST_BYTES, unseal } from '../envelope.js';
import {
  type Envelope,
  type SealedEnvelope,
  type SharedCache,
  type SharedCacheStats,
} from '../shared-cache.js';
import { restAtEnd, withTimeout } from './connection.js';
import { RedisKeys } from './keys.js';
import { watchSilence } from './silence.js';
import { type RedisClient } from '../redis-options.js';
import { wireOf, type Wire } from './wire.js';

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
/** An answer begins with a digest of its key: a reply to another call must not pass for this one. */
const MARK_LENGTH = 17;
const ANY_MARK = /^#[\w-]{16}\{/;

/** Answers in Redis, each under a key of its own that ends with its time. */
export class RedisSharedCache implements SharedCache {
  reading = 0;
  private readonly names: RedisKeys;
  private readonly wire: Wire;
  private readonly maxWrites: number;
  private writing = 0;
  /** Until the client is connected for the first time, or has failed to be. */
  private opening: Promise<unknown> | undefined;
  private readonly stopWatch: Cancel | undefined;
  private readonly counts = {
    ...{ hits: 0, misses: 0, unreadable: 0 },
    ...{ stored: 0, tooBig: 0, dropped: 0, failedWrites: 0 },
  };

  constructor(
    private readonly settings: RedisSharedCacheSettings,
    private readonly clock: Pick<Clock, 'after' | 'every' | 'soon'>,
  ) {
    this.names = new RedisKeys(settings.prefix);
    this.wire = wireOf(settings.client);
    if (settings.isOwned) this.stopWatch = watchSilence(settings.client, clock);
    this.maxWrites = settings.maxWrites ?? MOST_WRITES;
    this.opening = firstConnection(settings.client)?.then(() => (this.opening = undefined));
  }

  async get(key: string, timeoutMs: number): Promise<Envelope | undefined> {
    if (this.isAway) throw new StoreUnavailableError('no connection');
    const text = await withTimeout(this.read(key), timeoutMs, this.clock);
    if (text === '') {
      this.counts.misses++;
      return undefined;
    }
    const envelope = this.unmarked(key, text);
    this.counts[envelope === undefined ? 'unreadable' : 'hits']++;
    return envelope;
  }

  set(key: string, { text, bytes }: SealedEnvelope, ttlMs: number): boolean | Promise<boolean> {
    if (bytes > MOST_BYTES) {
      this.counts.tooBig++;
      return false;
    }
    if (this.writing >= this.maxWrites || this.isAway) {
      this.counts.dropped++;
      return false;
    }
    this.writing++;
    const name = this.names.answer(key);
    const write = () => this.settings.client.set(name, markOf(name) + text, 'PX', Math.ceil(ttlMs));
    return this.heed(this.opening === undefined ? write() : this.opening.then(write));
  }

  stats(): SharedCacheStats {
    return { ...this.counts, strayReplies: this.wire.strayReplies };
  }

  close(): void {
    this.stopWatch?.();
    if (this.settings.isOwned) this.settings.client.disconnect();
  }

  /** The first connection is waited for: a process that was started into an outage has no other answers. */
  private get isAway(): boolean {
    return this.opening === undefined && this.settings.client.status !== 'ready';
  }

  private async heed(written: Promise<unknown>): Promise<boolean> {
    try {
      if ((await written) !== 'OK') throw this.wire.stray('set');
      this.counts.stored++;
      return true;
    } catch {
      this.counts.failedWrites++;
      return false;
    } finally {
      this.writing--;
    }
  }

  /** The answer to this key; undefined for what is no answer. One to another key must not be here. */
  private unmarked(key: string, text: string): Envelope | undefined {
    if (text.length > MARK_LENGTH + MOST_BYTES) return undefined;
    if (text.startsWith(markOf(this.names.answer(key)))) return unseal(text.slice(MARK_LENGTH));
    if (ANY_MARK.test(text)) throw this.wire.stray('getrange');
    return undefined;
  }

  /** Empty if there is nothing. No more is read than can be of use, however large the value is. */
  private async read(key: string): Promise<string> {
    this.reading++;
    try {
      await this.opening;
      const { client } = this.settings;
      const most = MARK_LENGTH + MOST_BYTES;
      const text: unknown = await client.getrange(this.names.answer(key), 0, most);
      if (typeof text === 'string') return text;
      throw this.wire.stray('getrange');
    } catch (error) {
      // A list or a hash at that key is not the store's failure.
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return NO_ENVELOPE;
      throw error;
    } finally {
      this.reading--;
    }
  }
}

const NO_ENVELOPE = 'null';

/** Not `whenReady` of the other stores: a cache waits for the first attempt only, and a failed one ends the wait. */
function firstConnection(client: Redis | Cluster): Promise<unknown> | undefined {
  if (client.status === 'ready') return undefined;
  return new Promise((resolve) => {
    for (const event of ['ready', 'close', 'end']) client.once(event, resolve);
  });
}

function markOf(name: string): string {
  return digestOf(name).slice(0, MARK_LENGTH);
}

/**
 * A connection like the client's, for answers only. It fails at once while there is none, and says
 * nothing: whoever reads finds out.
 */
export function connectionBeside(given: RedisClient): Redis | Cluster {
  const client = given as Redis | Cluster;
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
  wireOf(beside).isOurs = true;
  restAtEnd(beside);
  return beside;
}
