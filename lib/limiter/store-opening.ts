import { type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { RedisStore, type RedisStoreSettings } from '../stores/redis/redis-store.js';
import { type MemoryStoreOptions, type RedisStoreOptions } from './options.js';

/** What the shared store tells its limiter. */
type StoreNews = Pick<RedisStoreSettings, 'onSwitch' | 'onReady' | 'onRevision'>;

/** The store that a limiter shares with others; undefined if its options have none. */
export function openRemote(
  store: MemoryStoreOptions | RedisStoreOptions,
  nodeId: string,
  clock: Clock,
  news: StoreNews,
): RedisStore | undefined {
  if (store.type === 'memory') return undefined;
  const { client, url, options, cluster, driver, prefix, maxBatch } = store;
  return new RedisStore(
    {
      connection: { client, url, options, cluster, driver },
      prefix,
      maxBatch,
      nodeId,
      decisionTimeoutMs: durationMs(store.decisionTimeout, 'store.decisionTimeout'),
      ...news,
    },
    clock,
  );
}
