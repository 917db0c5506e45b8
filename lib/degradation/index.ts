export { AnswerCaches, type AnswerCacheStats, type Cached } from './answer-caches.js';
export {
  cacheability,
  foreignType,
  foreignVary,
  mayStore,
  type AnswerFacts,
  type Cacheability,
  type CallerFacts,
} from './cacheability.js';
export * from './contract.js';
export { degradeKey, type DegradeKeyParts } from './degrade-key.js';
export {
  DegradationCore,
  type DegradationParts,
  type DegradationStats,
} from './degradation-core.js';
export { FallbackChain } from './fallback-chain.js';
export { type FallbackStats } from './fallback-counts.js';
export { isStream, type FallbackFault } from './fallback-desk.js';
export {
  checkDegradation,
  checkFields,
  DegradationOptions,
  type DegradationInput,
  type ResourceMode,
  type ResourceOptions,
} from './options.js';
export { isPlainData } from './plain-data.js';
export { Recoveries } from './recoveries.js';
export { RecoveryOptions } from './recovery-options.js';
export { Recovery } from './recovery.js';
