export {
  currentRun,
  Protect,
  protectedMethodOf,
  protectWith,
  type ProtectedMethod,
  type ProtectSettings,
} from './protect.decorator.js';
export { Degrade } from './degrade.decorator.js';
export { RateLimit, type RateLimitSettings } from './rate-limit.decorator.js';
export { RateLimitCost } from './rate-limit-cost.decorator.js';
export { RateLimitDecision } from './rate-limit-decision.decorator.js';
export { SkipRateLimit } from './skip-rate-limit.decorator.js';
