export { BucketTable } from './memory/bucket-table.js';
export { MemoryStore } from './memory/memory-store.js';
export { RedisStore } from './redis/redis-store.js';
export type { RedisConnectionOptions } from './redis/connection.js';
export * from './remote-store.js';
