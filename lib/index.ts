// The module and its limits, and of the other features what most applications name.
export {
  type ClusterOverload,
  type ConfigUpdate,
  type ConsumptionReport,
  type QuotaAdjust,
  type TokenRequest,
  type TokenResponse,
  type RateLimiterEvents,
} from './limiter/events.js';
export { type AppStatus, type QuotaStatus } from './algorithms/quota/quota-status.js';
export { clientAddress } from './common/address.js';
export { type Clock, type Cancel } from './common/clock.js';
export { Degrade } from './degradation/degrade.decorator.js';
export { currentRun, Protect, type ProtectOptions } from './protection/protect.decorator.js';
export {
  RateLimit,
  RateLimitCost,
  RateLimitDecision,
  SkipRateLimit,
  type RateLimitOptions,
} from './limits/rate-limit.decorators.js';
export { rateLimitOf } from './limits/charges.js';
export { type KeyFunction, type KeyOption, type PerRequest } from './limits/key-resolver.js';
export { ProtectionFilter } from './protection/protection.filter.js';
export { RateLimitGuard } from './limits/rate-limit.guard.js';
export {
  RateLimitedException,
  RefusedException,
  type RateLimitedBody,
  type RefusedBody,
  type RejectionBody,
  type UnavailableBody,
  type UnansweredBody,
} from './requests/rejections.js';
export { RequestFaults } from './limits/request-faults.js';
export { type PolicyChoice, type PolicyUse } from './limits/route-metadata.js';
export {
  RouteOptions,
  type Rejection,
  type RouteFields,
  type RoutePolicy,
  type Tier,
  type TierLookup,
} from './limits/route-policy.js';
export {
  ConfigConflictError,
  ConfigRefusedError,
  TooManyStagedError,
  UnknownRevisionError,
  UnknownStagedError,
} from './config/config-errors.js';
export {
  RateLimitConfig,
  type ConfigChange,
  type ConfigRefusal,
  type ConfigSnapshot,
  type UpdateOptions,
} from './config/rate-limit-config.js';
export { type ConfigLayer } from './config/schema/check.js';
export { type ConfigDocument } from './config/schema/document.schema.js';
export { type ConfigSource } from './config/sources/source-layer.js';
export { FileSource, FileSourceOptions } from './config/sources/file-source.js';
export { ConfigSyntaxError } from './config/sources/parse-text.js';
export { ConfigOptions } from './config/config.options.js';
export { Overload } from './overload/overload.js';
export {
  type LoadSample,
  type OverloadEvents,
  type OverloadStats,
  type Refused,
  type Standing,
} from './overload/events.js';
export { type Refusal, type TierCounts } from './overload/line.js';
export {
  OverloadOptions,
  ScoreOptions,
  ScoreThresholds,
  ScoreWeights,
  type LoadProbe,
  type OverloadInput,
  type OverloadMode,
  type ScoreSource,
} from './overload/settings.js';
export { tierByPath } from './overload/tiers.js';
export { type TierRequest, type TierResolver } from './requests/tier.js';
export { connectionShare } from './protection/connection-share.js';
export {
  BigValueError,
  BreakerOpenError,
  BulkheadRejectedError,
  DeadlineExceededError,
  ProtectionMissingError,
  ProtectionRejectedError,
  UnknownResourceError,
} from './protection/errors.js';
export { type SlowCall } from './protection/events.js';
export { ABSENT, TOO_BIG, type Found, type Step } from './protection/fallbacks.js';
export { LocalCache } from './protection/local-cache.js';
export { Protection } from './protection/protection.js';
export {
  BreakerOptions,
  BulkheadOptions,
  SlowCallOptions,
  ThrottleOptions,
  type RateKey,
  type RateOptions,
  type ResourceInput,
  type ResourceOptions,
  type ResourcesInput,
} from './protection/resource-options.js';
export { type ResourceStats } from './protection/resource-stats.js';
export { type Failure, type RunContext, type RunOptions } from './protection/run.js';
export { joinValue, partKeys, splitValue, type SplitManifest } from './protection/big-values.js';
export { Degradation } from './degradation/degradation.js';
export { DegradeModuleOptions } from './degradation/degrade-module-options.js';
export {
  degradeMessage,
  type DegradeContext,
  type DegradeOptions,
} from './degradation/degrade-options.js';
export { DegradeInterceptor } from './degradation/degrade.interceptor.js';
export { DegradedException } from './degradation/degraded.exception.js';
export {
  type DegradeLevel,
  type DegradeReason,
  type RecoveryStats,
} from './degradation/core/contract.js';
export { type DegradationStats } from './degradation/core/degradation-core.js';
export { RecoveryOptions } from './degradation/core/options.js';
export { RateLimitModule } from './rate-limit.module.js';
export {
  RateLimitModuleOptions,
  type RateLimitModuleAsyncOptions,
  type RateLimitModuleInput,
  type RateLimitOptionsFactory,
} from './rate-limit.options.js';
export { GrpcOptions } from './transports/grpc/grpc-status.js';
export { HeaderOptions } from './transports/shared/rate-limit-headers.js';
export { DroppedEvents } from './transports/rpc/dropped-events.js';
export { KafkaOptions } from './transports/rpc/kafka-waiting.js';
export { RetryBudget } from './transports/rpc/retry-budget.js';
export {
  isRateLimitError,
  isUnavailableError,
  retryAfter,
  retryAfterMsOf,
  RetryAfterOptions,
  type GrpcCallError,
  type GrpcRateLimitError,
  type GrpcUnavailableError,
  type LimitedUnansweredBody,
} from './transports/rpc/rate-limit-errors.js';
export {
  GraphqlRejection,
  GraphqlUnavailable,
  type GraphqlRejectionExtensions,
} from './transports/graphql/graphql-rejection.js';
export { WebsocketOptions, type WsRejection } from './transports/ws/ws.transport.js';
export { OldNestError, OldNodeError } from './versions.js';
export { durationOf, rateOf, type Duration, type Rate, type TimeUnit } from './common/duration.js';
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
  WrongPackageError,
  type ConfigIssue,
} from './common/errors.js';
export { type Decision, type DecidingTier, type DecisionSource } from './limiter/decision.js';
export {
  MemoryStoreOptions,
  RedisStoreOptions,
  type RateLimiterOptions,
  type StoreInput,
} from './limiter/options.js';
export { type LimitFigures, type LimitInput } from './limiter/given-limits.js';
export {
  type ByPolicyName,
  type PolicyName,
  type RateLimitPolicies,
} from './limiter/policy-names.js';
export {
  type LimitOptions,
  HotOptions,
  PolicyOptions,
  type AlgorithmName,
  type ByAlgorithm,
  type FailureMode,
  type PassThrough,
  type PolicyFields,
  type PolicyInput,
  type SyncMode,
  type WithLimit,
} from './limiter/policy-options.js';
export { nginxLimit, type NginxLimit, type NginxPolicy } from './limiter/nginx-limit.js';
export { type LimitsChange } from './limiter/limits-change.js';
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
  type RateQuery,
  type AppQuotaStats,
  type QuotaStats,
  type RateLimiterStats,
  ClusterQuota,
  type PolicyInfo,
  type LimitInfo,
  type AppSourceStats,
} from './limiter/rate-limiter.js';
export { type HotValue } from './local/hot-values.js';
export { type StoreStats } from './stores/redis/redis-store.js';
export { MonitorOptions } from './observability/monitor-options.js';
export { RateLimitMonitor, type MonitorEvents, type Tick } from './observability/monitor.js';
export { type Alert } from './observability/alerts/alert.js';
export { type Severity } from './observability/alerts/alert-options.js';
export { type AlertsInput } from './observability/alerts/alerts.schema.js';
export { type EarlySignal } from './observability/alerts/early.js';
export { type RuleName } from './observability/alerts/rule-names.js';
export { AlertNotSentError, type AlertSink } from './observability/alerts/sinks/sink.js';
export { webhook, type WebhookOptions } from './observability/alerts/sinks/webhook.js';
export { type WebhookFormat } from './observability/alerts/sinks/payloads.js';
export {
  type AppState,
  type ConfigState,
  type FleetNode,
  type FleetState,
  type LearningState,
  type LineState,
  type Mark,
  type MonitorState,
  type QuotaState,
  type ResourceState,
  type SeriesState,
  type ShownHotValue,
  type ShownKey,
  type StoreState,
  type WatchedState,
} from './observability/state.js';
export { type Horizon } from './observability/series.js';
export { type SeriesHistory } from './observability/series-history.js';
export { verdict, type WatchedFleet, type Verdict } from './observability/verdict.js';
export { type CapacityReport, type CapacityRow } from './observability/report.js';
export { type Forecast, type UseFigure } from './observability/capacity.js';
export {
  type Family,
  type FamilyInfo,
  type MetricKind,
  type Sample,
} from './observability/families.js';
export { type LogLinear } from './common/histogram.js';
export { type DenialListener } from './requests/request-counts.js';
export { costBySize } from './limiter/cost-by-size.js';
export { createRateLimiter } from './limiter/create-rate-limiter.js';
export { type StoreSwitch } from './stores/remote-store.js';
export { type NodeMode } from './local/lease-calls.js';
export { type PolicyCounters, type SourceCounters } from './limiter/limit-counters.js';
export {
  type RedisClient,
  type RedisCommonOptions,
  type RedisClientOptions,
  type RedisClusterOptions,
  type RedisConnectionOptions,
  type RedisNode,
} from './stores/redis-options.js';
