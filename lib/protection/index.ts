export { type BreakerMode } from './breaker.js';
export { type BreakerKind } from './breaker-state.js';
export {
  connectionShare,
  type ConnectionFigures,
  type ConnectionShare,
} from './connection-share.js';
export {
  BigValueError,
  BreakerOpenError,
  BulkheadRejectedError,
  DeadlineExceededError,
  ProtectionMissingError,
  ProtectionRejectedError,
  UnknownResourceError,
  type RejectionReason,
} from './errors.js';
export {
  type BreakerChange,
  type HeldSlot,
  type ProtectionEvents,
  type ReplacedError,
  type SlowCall,
} from './events.js';
export {
  ABSENT,
  TOO_BIG,
  type Absent,
  type Found,
  type Step,
  type StepsOptions,
  type TooBig,
} from './fallbacks.js';
export { LocalCache, LocalCacheOptions } from './local-cache.js';
export { Protection, type ProtectionParts } from './protection.js';
export {
  BreakerOptions,
  BulkheadOptions,
  PRESETS,
  SlowCallOptions,
  type PresetName,
  type ResourceInput,
  type ResourceOptions,
  type ResourcesInput,
} from './resource-options.js';
export { type BreakerStats, type ResourceStats } from './resource-stats.js';
export { type Failure, type RunContext, type RunOptions, type Work } from './run.js';
export {
  joinValue,
  partKeys,
  splitValue,
  type SplitManifest,
  type SplitValue,
} from './split-value.js';
