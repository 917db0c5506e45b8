export { BucketTable } from './memory/bucket-table.js';
export { MemoryQuota } from './memory/memory-quota.js';
export { MemoryStore } from './memory/memory-store.js';
export { type QuotaLimitsStore, type QuotaOverview, type QuotaStore } from './quota-store.js';
export { RedisQuota } from './redis/redis-quota.js';
export { RedisStore } from './redis/redis-store.js';
export type { RedisConnectionOptions } from './redis/connection.js';
export * from './remote-store.js';
