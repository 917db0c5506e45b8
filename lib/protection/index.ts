export { type BreakerMode } from './breaker.js';
export { type BreakerKind } from './breaker-state.js';
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
  type SlowCall,
} from './events.js';
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
export { type RunContext, type RunOptions, type Work } from './run.js';
export {
  joinValue,
  partKeys,
  splitValue,
  type SplitManifest,
  type SplitValue,
} from './split-value.js';
