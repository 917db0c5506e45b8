// The part that needs @nestjs/terminus; the main entry does without it.
export { RateLimitHealthIndicator, type HealthOptions } from './observability/health.js';
export { type HealthDetails } from './observability/state.js';
