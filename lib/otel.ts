// The part that needs @opentelemetry/api; the main entry does without it.
export { RateLimitOtelModule, type OtelOptions } from './observability/export/otel.js';
