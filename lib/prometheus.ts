// The part that needs prom-client; the main entry does without it, and has `RateLimitMonitor.text()`.
export {
  RateLimitPrometheusModule,
  type PrometheusOptions,
} from './observability/export/prometheus.js';
