// Everything about resources inside the service: @Protect, deadlines, bulkheads, breakers.
export { currentRun, Protect, type ProtectOptions } from './protection/protect.decorator.js';
export { ProtectionFilter, type ProtectionFailure } from './protection/protection.filter.js';
export { type BreakerKind } from './protection/breaker-state.js';
export { type BreakerMode } from './protection/breaker.js';
export {
  connectionShare,
  type ConnectionFigures,
  type ConnectionShare,
} from './protection/connection-share.js';
export {
  BigValueError,
  BreakerOpenError,
  BulkheadRejectedError,
  DeadlineExceededError,
  ProtectionMissingError,
  ProtectionRejectedError,
  UnknownResourceError,
  type RejectionReason,
} from './protection/errors.js';
export {
  type BreakerChange,
  type HeldSlot,
  type ProtectionEvents,
  type ReplacedError,
  type SlowCall,
} from './protection/events.js';
export {
  ABSENT,
  TOO_BIG,
  type Absent,
  type Found,
  type Step,
  type StepsOptions,
  type TooBig,
} from './protection/fallbacks.js';
export { LocalCache, LocalCacheOptions } from './protection/local-cache.js';
export { Protection, type ProtectionDeps } from './protection/protection.js';
export {
  BreakerOptions,
  BulkheadOptions,
  SlowCallOptions,
  ThrottleOptions,
  type BulkheadLimit,
  type RateKey,
  type RateOptions,
  type PresetName,
  type ResourceInput,
  type ResourceOptions,
  type ResourcesInput,
} from './protection/resource-options.js';
export {
  type BreakerStats,
  type ResourceStats,
  type ResourceCounts,
  type ThrottleStats,
} from './protection/resource-stats.js';
export { type Failure, type RunContext, type RunOptions, type Work } from './protection/run.js';
export {
  joinValue,
  partKeys,
  splitValue,
  type SplitManifest,
  type SplitValue,
} from './protection/big-values.js';
