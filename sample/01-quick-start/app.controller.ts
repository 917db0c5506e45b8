import { Controller, Get, Param, UseFilters, UseGuards } from '@nestjs/common';
import { RateLimiter } from 'nestjs-weir';
import { AcquireTimeoutFilter } from './acquire-timeout.filter.js';
import { Limit, RateLimitGuard } from './rate-limit.guard.js';

/** Longer than this nobody wants to look at a page that loads. */
const PATIENCE_MS = 5000;

@Controller()
@UseGuards(RateLimitGuard)
export class AppController {
  constructor(private readonly limiter: RateLimiter) {}

  @Get('hello')
  @Limit({ policy: 'hello', key: (request) => request.ip })
  hello(): object {
    return { hello: 'world' };
  }

  /** The headers stand in for what a real app knows about a caller once it has logged in. */
  @Get('report')
  @Limit({
    policy: 'report',
    key: (request) => request.get('x-user'),
    tier: (request) => request.get('x-tier'),
  })
  report(): object {
    return { report: 'all is well' };
  }

  /** Not refused but held back: the guard has no part in it. */
  @Get('orders/:id')
  @UseFilters(AcquireTimeoutFilter)
  async order(@Param('id') id: string): Promise<object> {
    const startedMs = performance.now();
    await this.limiter.acquire({ policy: 'orders', key: 'all' }, { timeoutMs: PATIENCE_MS });
    return { order: id, waitedMs: Math.round(performance.now() - startedMs) };
  }
}
