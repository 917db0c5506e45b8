// Everything about answers in place of the real one: @Degrade, its levels, caches and recovery.
export { Degrade } from './degradation/degrade.decorator.js';
export { Degradation } from './degradation/degradation.js';
export { DegradeModuleOptions } from './degradation/degrade-module-options.js';
export {
  degradeMessage,
  type DegradeContext,
  type DegradeNotice,
  type DegradeOptions,
  type WarmEntry,
  type WarmEntries,
  DegradeMessage,
  type WarmUpEntry,
} from './degradation/degrade-options.js';
export { DegradeInterceptor } from './degradation/degrade.interceptor.js';
export { DegradedException, type DegradedBody } from './degradation/degraded.exception.js';
export { type WarmedResource } from './degradation/route-warming.js';
export {
  type DegradeLevel,
  type DegradeReason,
  type HealthProbe,
  type RecoveryChange,
  type RecoveryPhase,
  type RecoveryStats,
  type TripCause,
  type WarmUpReport,
} from './degradation/core/contract.js';
export { type DegradationStats } from './degradation/core/degradation-core.js';
export {
  RecoveryOptions,
  type ResourceMode,
  type DegradedResourceOptions,
  DegradationOptions,
} from './degradation/core/options.js';
export { type FallbackStats } from './degradation/core/fallback-chain.js';
export { type AnswerCacheStats } from './degradation/core/answer-caches.js';
export { type SharedLevelStats } from './degradation/core/shared-level.js';
export { type SchemaVersion, type SharedCacheStats } from './stores/shared-cache.js';
export { type FallbackFault } from './degradation/core/fallback-runner.js';
