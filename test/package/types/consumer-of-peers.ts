// An application's use of what needs an optional peer, with the peer's own types.
import { metrics } from '@opentelemetry/api';
import { Redis } from 'ioredis';
import { createRateLimiter } from 'nestjs-weir';
import { limitStream } from 'nestjs-weir/grpc';
import { RateLimitOtelModule } from 'nestjs-weir/otel';
import { RateLimitPrometheusModule } from 'nestjs-weir/prometheus';
import { Registry } from 'prom-client';

const client = new Redis({ lazyConnect: true });
const limiter = createRateLimiter({ store: { type: 'redis', client } });
RateLimitPrometheusModule.forRoot({ registry: new Registry() });
RateLimitOtelModule.forRoot({ meterProvider: metrics.getMeterProvider() });
// @ts-expect-error No registry.
RateLimitPrometheusModule.forRoot({ registry: 5 });
// @ts-expect-error No meter provider.
RateLimitOtelModule.forRoot({ meterProvider: new Registry() });
// @ts-expect-error An operator, not a number.
export const wrong: number = limitStream(limiter, { policy: 'policy', key: 'k' });
