export { chargeOf, keepCharge, rateLimitOf, type Charge, type HandOver } from './charges.js';
export { GuardFailure } from './guard-failure.js';
export { AppRateLimitGuard, ClassRateLimitGuard } from './outer-guards.js';
export { type KeyFunction, type KeyOption, type PerRequest } from './key-options.js';
export { NO_KEY, NOT_ASYNC, principalName, type KeySettings } from './key-resolver.js';
export { PolicyCatalog } from './policy-catalog.js';
export { ProtectionFilter } from './protection.filter.js';
export { Questions } from './question.js';
export { AwaitedValues } from './awaited-values.js';
export { refusalOf, RefusedException, type RefusedBody } from './refused.exception.js';
export { RequestFaults } from './request-faults.js';
export { RateLimitFilter } from './rate-limit.filter.js';
export { RateLimitGuard } from './rate-limit.guard.js';
export { RateLimitedException, type RateLimitedBody } from './rate-limited.exception.js';
export { type RejectionBody } from './rejection.js';
export {
  CallerGone,
  Transports,
  type Around,
  type Patience,
  type Transport,
} from './request-reader.js';
export { type RouteFacts } from './route-facts.js';
export * from './route-metadata.js';
export {
  CALL,
  routePlaceOf,
  servedPathText,
  type RoutePlace,
  type ServedPath,
} from './route-place.js';
export { RoutePlan } from './route-plan.js';
export {
  RouteOptions,
  type AppliedPolicy,
  type Rejection,
  type RoutePolicy,
  type Tier,
  type TierLookup,
} from './route-policy.js';
export { ByHandler, type Class, type Handler } from './by-handler.js';
export {
  methodNameOf,
  RouteTable,
  type NamedHandler,
  type RouteTableSettings,
} from './route-table.js';
export { grpcCallOf, subjectOf, type GrpcCall } from './subject.js';
export { rejectThrottlerOptions, rejectThrottlerPolicy } from './throttler-words.js';
export { TurnedAway } from './turned-away.js';
export { type UnavailableBody } from './unavailable.js';
export { Waiting } from './waiting.js';
export { keepWordlessDecision, wordlessDecisionOf } from './wordless-messages.js';
