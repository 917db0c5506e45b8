import { type CreateContender } from './contender.js';

/**
 * Everything that can be measured. Loaded by name and only when asked for, so that the process of
 * one contender holds nothing of another's.
 */
export const contenders = {
  floor: async () => (await import('./memory/floor.js')).createFloor,
  weir: async () => (await import('./memory/weir.js')).createWeir,
  'weir-changed': async () => (await import('./memory/weir.js')).createChangedWeir,
  'weir-watched': async () => (await import('./memory/weir-watched.js')).createWatched,
  'weir-unwatched': async () => (await import('./memory/weir-watched.js')).createUnwatched,
  'weir-viewed': async () => (await import('./memory/weir-viewed.js')).createViewed,
  'weir-unseen': async () => (await import('./memory/weir-viewed.js')).createUnseen,
  'weir-list': async () => (await import('./memory/weir-list.js')).createWeirList,
  'weir-quota': async () => (await import('./memory/weir-quota.js')).createWeirQuota,
  'rate-limiter-flexible': async () =>
    (await import('./memory/rate-limiter-flexible.js')).createRateLimiterFlexible,
  'nestjs-throttler': async () =>
    (await import('./memory/nestjs-throttler.js')).createNestjsThrottler,
  'express-rate-limit': async () =>
    (await import('./memory/express-rate-limit.js')).createExpressRateLimit,
  'fastify-rate-limit': async () =>
    (await import('./memory/fastify-rate-limit.js')).createFastifyRateLimit,
  limiter: async () => (await import('./memory/limiter.js')).createLimiter,
  'guard/hand-written': async () => (await import('./guard/hand-written.js')).createHandWritten,
  'guard/weir': async () => (await import('./guard/weir-guard.js')).createWeirGuard,
  'guard/throttler': async () => (await import('./guard/throttler-guard.js')).createThrottlerGuard,
  'redis/weir': async () => (await import('./redis/weir.js')).createWeir,
  'redis/weir-quota': async () => (await import('./redis/weir-quota.js')).createWeirQuota,
  'redis/rate-limiter-flexible': async () =>
    (await import('./redis/rate-limiter-flexible.js')).createRateLimiterFlexible,
  'redis/rate-limiter-flexible-pipelined': async () =>
    (await import('./redis/rate-limiter-flexible.js')).createPipelined,
  'redis/rate-limiter-flexible-blocking': async () =>
    (await import('./redis/rate-limiter-flexible.js')).createBlocking,
  'redis/rate-limit-redis': async () =>
    (await import('./redis/rate-limit-redis.js')).createRateLimitRedis,
  'redis/throttler-storage-redis': async () =>
    (await import('./redis/throttler-storage-redis.js')).createThrottlerStorageRedis,
  'protection/bare': async () => (await import('./protection/bare.js')).createBare,
  'protection/weir': async () => (await import('./protection/weir.js')).createWeir,
  'protection/cockatiel': async () => (await import('./protection/cockatiel.js')).createCockatiel,
  'protection/cockatiel-cheapest': async () =>
    (await import('./protection/cockatiel.js')).createCheapest,
  'protection/opossum': async () => (await import('./protection/opossum.js')).createOpossum,
} satisfies Record<string, () => Promise<CreateContender>>;

export type ContenderName = keyof typeof contenders;
