export {
  HIGHEST_REVISION,
  LARGEST_RECORD_BYTES,
  MOST_REVISIONS,
  shortened,
  MOST_STAGED,
} from './config-record.js';
export type * from './config-store.js';
export type * from './order-store.js';
export { RedisOrders } from './redis/redis-orders.js';
export { BucketTable } from './memory/bucket-table.js';
export { MemoryConfig } from './memory/memory-config.js';
export { MemoryQuota } from './memory/memory-quota.js';
export { MOST_BYTES, seal, unseal } from './envelope.js';
export { MemorySharedCache } from './memory/memory-shared-cache.js';
export { MemoryStore } from './memory/memory-store.js';
export {
  type QuotaLimitsStore,
  type QuotaMembers,
  type QuotaOverview,
  type QuotaStore,
} from './quota-store.js';
export { RedisConfig } from './redis/redis-config.js';
export { SOLE_PROBER, type ProbeLease } from './probe-lease.js';
export { RedisProbeLease } from './redis/redis-probe-lease.js';
export { RedisQuota } from './redis/redis-quota.js';
export { connectionBeside, RedisSharedCache } from './redis/redis-shared-cache.js';
export { RedisStore, type RedisStoreSettings, type StoreStats } from './redis/redis-store.js';
export type { RedisConnectionOptions } from './redis/connection.js';
export * from './remote-store.js';
export * from './shared-cache.js';
