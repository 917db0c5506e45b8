import { Controller, Get, Module } from '@nestjs/common';
import { RateLimitModule, SkipRateLimit } from 'nestjs-weir';

@Controller()
@SkipRateLimit()
class HealthController {
  @Get('health')
  health() {
    return 'fine';
  }

  @Get('metrics')
  metrics() {
    return '';
  }
}

@Controller()
class PageController {
  @Get()
  page() {
    return 'ok';
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: { default: { rate: '1/min' } },
      apply: ['default'],
      // GET /health, /healthz, /livez, /readyz and /metrics pass the line of overload by default.
      overload: { enabled: true },
    }),
  ],
  controllers: [HealthController, PageController],
})
export class HealthModule {}
