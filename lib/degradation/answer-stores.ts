import { type Clock } from '../common/clock.js';
import { type DegradationParts } from './core/degradation-core.js';
import { RedisStoreOptions, type StoreInput } from '../limiter/options.js';
import { RedisProbeLease } from '../stores/redis/redis-probe-lease.js';
import { connectionBeside, RedisSharedCache } from '../stores/redis/redis-shared-cache.js';
import { connectRedis } from '../stores/redis/connection.js';

/**
 * Where a fleet keeps answers and agrees on who probes: in the store that it shares, by a connection of
 * its own, so that a large answer never stands in front of a decision. A process by itself has no such place.
 */
export function openAnswers(
  store: StoreInput | undefined,
  clock: Clock,
): Pick<DegradationParts, 'shared' | 'lease'> {
  if (!isRedis(store)) return {};
  const { prefix = new RedisStoreOptions().prefix } = store;
  const client =
    store.client === undefined ? connectRedis(store).client : connectionBeside(store.client);
  return {
    shared: new RedisSharedCache({ client, prefix, isOwned: true }, clock),
    lease: new RedisProbeLease({ client, prefix }, clock),
  };
}

/** Whether other processes, and maybe other services, keep their answers in the same place. */
export function isRedis(
  store: StoreInput | undefined,
): store is Extract<StoreInput, { type: 'redis' }> {
  return typeof store === 'object' && store.type === 'redis';
}
