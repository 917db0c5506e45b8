export { NoopRateLimiter } from '../limiter/noop-rate-limiter.js';
export {
  InProcessRedis,
  type InProcessRedisOptions,
  type InProcessStore,
} from './in-process-redis.js';
export { ManualClock, settle } from './manual-clock.js';
export { RateLimitTestingModule } from './rate-limit-testing.module.js';
export {
  overrideRateLimits,
  type OverridableModule,
  type RateLimitOverrides,
} from './override-rate-limits.js';
export {
  rateLimitMatchers,
  type HeaderRecord,
  type LimitedResponse,
  type MatcherVerdict,
  type RateLimitExpectation,
  type RateLimitMatchers,
} from './rate-limit.matchers.js';
