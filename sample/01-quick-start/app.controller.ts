import { Controller, Get, Param } from '@nestjs/common';
import { RateLimit, RateLimitDecision, type Decision } from 'nestjs-weir';

@Controller()
export class AppController {
  @Get('hello')
  @RateLimit('hello')
  hello(): object {
    return { hello: 'world' };
  }

  @Get('report')
  @RateLimit('report')
  report(): object {
    return { report: 'all is well' };
  }

  /** Not refused but held back, as long as there is room to wait. */
  @Get('orders/:id')
  @RateLimit('orders')
  order(@Param('id') id: string, @RateLimitDecision() decision: Decision): object {
    return { order: id, waitedMs: Math.round(decision.delayMs) };
  }
}
