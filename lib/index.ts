export { type Clock, type Cancel } from './common/clock.js';
export { type Duration } from './common/duration.js';
export {
  AcquireTimeoutError,
  CostExceedsLimitError,
  InvalidArgumentError,
  LimiterClosedError,
  MissingPackageError,
  RateLimitError,
  StoreTimeoutError,
  StoreUnavailableError,
  TooManyWaitersError,
  UnknownAppError,
  UnknownOptionError,
  UnknownPolicyError,
} from './common/errors.js';
export { type Decision, type DecidingTier, type DecisionSource } from './limiter/decision.js';
export { type RateLimiterEvents } from './limiter/events.js';
export {
  MemoryStoreOptions,
  RedisStoreOptions,
  type RateLimiterOptions,
  type StoreInput,
} from './limiter/options.js';
export {
  PolicyOptions,
  type AlgorithmName,
  type FailureMode,
  type LimitOptions,
  type PolicyInput,
  type SyncMode,
} from './limiter/policy-options.js';
export {
  AppOptions,
  ClusterOptions,
  LocalOptions,
  type QuotaOptions,
} from './limiter/quota-options.js';
export {
  RateLimiter,
  type Acquire,
  type AcquireOptions,
  type AcquireRequest,
  type PolicyRequest,
  type QuotaRequest,
  type RateLimiterStats,
} from './limiter/rate-limiter.js';
export { createRateLimiter } from './limiter/weir-rate-limiter.js';
export { type StoreSwitch } from './stores/index.js';
