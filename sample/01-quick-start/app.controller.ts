import { Controller, Get, Param } from '@nestjs/common';
import { RateLimit, RateLimitDecision, type Decision } from 'nestjs-weir';

@Controller()
export class AppController {
  private orders = 0;

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
    this.orders++;
    return { order: id, place: this.orders, waitedMs: Math.round(decision.delayMs) };
  }
}
