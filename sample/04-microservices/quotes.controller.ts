import { Controller } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import { DroppedEvents, RateLimit } from 'nestjs-weir';

/** The service: it is asked for prices, and told about visits. */
@Controller()
export class QuotesController {
  private readonly visits = new Map<string, number>();

  constructor(private readonly dropped: DroppedEvents) {}

  /** A request: over the limit the caller gets an error that says when to come back. */
  @MessagePattern('quote')
  @RateLimit('quotes')
  quote({ tenant, sku }: { tenant: string; sku: string }): object {
    return { tenant, sku, price: 10 + (sku.length % 7) };
  }

  /** An event: nobody waits for an answer, so what is over the limit is dropped and counted. */
  @EventPattern('visited')
  @RateLimit({ rate: '5/min', key: { param: 'page' } })
  visited({ page }: { page: string }): void {
    this.visits.set(page, (this.visits.get(page) ?? 0) + 1);
  }

  @MessagePattern('visits')
  countVisits(): object {
    return { pages: Object.fromEntries(this.visits), dropped: this.dropped.total };
  }
}
