import { Controller, Get, HttpException, Module } from '@nestjs/common';
import { RateLimit, RateLimitModule, type Decision } from 'nestjs-weir';

/** The form that every error of this application has. */
function tooMany({ retryAfterMs, policy }: Decision): HttpException {
  const seconds = Math.ceil(retryAfterMs / 1000);
  return new HttpException({ error: { code: 'slow_down', limit: policy, seconds } }, 429);
}

@Controller()
class SearchController {
  @Get('search')
  @RateLimit('search')
  search() {
    return [];
  }

  @Get('export')
  @RateLimit('export')
  export() {
    return [];
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: { search: { rate: '1/min' }, export: { rate: '1/h' } },
      rejection: (decision, context) =>
        // Other transports keep their own form; an overloaded cluster stays a 503.
        context.getType() === 'http' && decision.tier !== 'cluster' ? tooMany(decision) : undefined,
    }),
  ],
  controllers: [SearchController],
})
export class BodyModule {}
