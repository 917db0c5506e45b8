export {
  type AppStatus,
  type ConfigUpdate,
  type ConsumptionReport,
  type Overload,
  type QuotaAdjust,
  type QuotaStatus,
  type TokenRequest,
  type TokenResponse,
} from './algorithms/quota/index.js';
export { type Clock, type Cancel } from './common/clock.js';
export {
  currentRun,
  Protect,
  Degrade,
  RateLimit,
  RateLimitCost,
  RateLimitDecision,
  SkipRateLimit,
  type ProtectSettings,
  type RateLimitSettings,
} from './decorators/index.js';
export {
  ProtectionFilter,
  RateLimitedException,
  RateLimitFilter,
  RateLimitGuard,
  rateLimitOf,
  RefusedException,
  RequestFaults,
  RouteOptions,
  type KeyFunction,
  type KeyOption,
  type PerRequest,
  type PolicyChoice,
  type PolicyUse,
  type RateLimitedBody,
  type RefusedBody,
  type Rejection,
  type RejectionBody,
  type RoutePolicy,
  type Tier,
  type TierLookup,
  type UnavailableBody,
} from './guards/index.js';
export {
  checkDocument,
  checkLayer,
  ConfigConflictError,
  ConfigRefusedError,
  ConfigSyntaxError,
  diff,
  FileSource,
  FileSourceOptions,
  RateLimitConfig,
  TooManyStagedError,
  UnknownRevisionError,
  UnknownStagedError,
  type AppDocument,
  type CheckOptions,
  type ClusterDocument,
  type ConfigChange,
  type ConfigConsumer,
  type ConfigDiff,
  type ConfigDocument,
  type ConfigLayer,
  type ConfigRefusal,
  type ConfigSnapshot,
  type ConfigSource,
  type DegradationDocument,
  type OwnLayer,
  type PastRevision,
  type PolicyDocument,
  type ProfileDocument,
  type ProtectionDocument,
  type RollbackOptions,
  type TextFormat,
  type UpdateOptions,
  type ValidateOptions,
} from './config/index.js';
export { ConfigOptions } from './config.options.js';
export {
  ABSENT,
  BigValueError,
  BreakerOpenError,
  BreakerOptions,
  BulkheadOptions,
  BulkheadRejectedError,
  connectionShare,
  DeadlineExceededError,
  joinValue,
  LocalCache,
  LocalCacheOptions,
  partKeys,
  Protection,
  ProtectionMissingError,
  ProtectionRejectedError,
  SlowCallOptions,
  splitValue,
  TOO_BIG,
  UnknownResourceError,
  type Absent,
  type BreakerChange,
  type BreakerKind,
  type BreakerMode,
  type BreakerStats,
  type ConnectionFigures,
  type ConnectionShare,
  type Failure,
  type Found,
  type HeldSlot,
  type PresetName,
  type ProtectionEvents,
  type ProtectionParts,
  type RejectionReason,
  type ReplacedError,
  type ResourceInput,
  type ResourceOptions,
  type ResourcesInput,
  type ResourceStats,
  type RunContext,
  type RunOptions,
  type SlowCall,
  type SplitManifest,
  type SplitValue,
  type Step,
  type StepsOptions,
  type TooBig,
  type Work,
} from './protection/index.js';
export {
  Degradation,
  DegradedException,
  degradeMessage,
  DegradeInterceptor,
  DegradeMessage,
  DegradeModuleOptions,
  type DegradeContext,
  type DegradedBody,
  type DegradeNotice,
  type DegradeOptions,
  type WarmedResource,
  type WarmQuestion,
  type WarmQuestions,
} from './interceptors/index.js';
export {
  RecoveryOptions,
  type DegradationStats,
  type DegradeLevel,
  type DegradeReason,
  type HealthProbe,
  type RecoveryChange,
  type RecoveryPhase,
  type RecoveryStats,
  type ResourceMode,
  type TripCause,
  type ResourceOptions as DegradedResourceOptions,
  type WarmUpReport,
} from './degradation/index.js';
export { RateLimitModule } from './rate-limit.module.js';
export {
  RateLimitModuleOptions,
  type RateLimitModuleAsyncOptions,
  type RateLimitModuleInput,
  type RateLimitOptionsFactory,
} from './rate-limit.options.js';
export { GrpcOptions } from './transports/grpc/grpc-options.js';
export { HeaderOptions } from './transports/http/rate-limit-headers.js';
export { DroppedEvents } from './transports/rpc/dropped-events.js';
export { KafkaOptions } from './transports/rpc/kafka-options.js';
export {
  isRateLimitError,
  isUnavailableError,
  retryAfterMsOf,
  type GrpcRateLimitError,
  type GrpcUnavailableError,
} from './transports/rpc/rate-limit-errors.js';
export { retryAfter, RetryAfterOptions } from './transports/rpc/retry-after.js';
export {
  GraphqlRejection,
  GraphqlUnavailable,
  type GraphqlRejectionExtensions,
} from './transports/graphql/graphql-rejection.js';
export { WebsocketOptions } from './transports/ws/violations.js';
export { type WsRejection } from './transports/ws/ws.transport.js';
export { type Duration } from './common/duration.js';
export {
  AcquireTimeoutError,
  CostExceedsLimitError,
  InvalidArgumentError,
  InvalidConfigError,
  LimiterClosedError,
  MissingPackageError,
  ModuleMissingError,
  RateLimitError,
  RestartNeededError,
  StoreTimeoutError,
  StoreUnavailableError,
  StrayReplyError,
  TooManyWaitersError,
  UnknownAppError,
  UnknownOptionError,
  UnknownPolicyError,
  type ConfigIssue,
} from './common/errors.js';
export { type Decision, type DecidingTier, type DecisionSource } from './limiter/decision.js';
export { type RateLimiterEvents } from './limiter/events.js';
export {
  MemoryStoreOptions,
  RedisStoreOptions,
  type RateLimiterOptions,
  type StoreInput,
} from './limiter/options.js';
export { type LimitInput } from './limiter/given-limits.js';
export { type LimitOptions } from './limiter/limit-figures.js';
export { nginxLimit, type NginxLimit, type NginxPolicy } from './limiter/nginx-limit.js';
export { type LimitsChange } from './limiter/limits-change.js';
export {
  PolicyOptions,
  type AlgorithmName,
  type FailureMode,
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
  type AppQuotaStats,
  type QuotaStats,
  type RateLimiterStats,
  type SharedRedis,
} from './limiter/rate-limiter.js';
export { type StoreStats } from './stores/redis/redis-store.js';
export { ClusterQuota } from './limiter/cluster-quota.js';
export { costBySize } from './limiter/cost-by-size.js';
export { createRateLimiter } from './limiter/weir-rate-limiter.js';
export { type ConfigRecord, type NodeAck, type StoreSwitch } from './stores/index.js';
