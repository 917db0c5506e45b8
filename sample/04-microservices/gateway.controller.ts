import { Controller, Get, HttpCode, Inject, Param, Post, UseFilters } from '@nestjs/common';
import { ClientProxy } from '@nestjs/microservices';
import { retryAfter } from 'nestjs-weir';
import type { Observable } from 'rxjs';
import { DeniedFilter } from './denied.filter.js';

/** What the world sees; it asks the service behind it. */
@Controller()
@UseFilters(DeniedFilter)
export class GatewayController {
  constructor(@Inject('SERVICE') private readonly service: ClientProxy) {}

  @Get('quotes/:tenant/:sku')
  quote(@Param() item: { tenant: string; sku: string }): Observable<unknown> {
    return this.service.send('quote', item);
  }

  /** Waits for as long as the service says, and asks again. */
  @Get('patient-quotes/:tenant/:sku')
  patientQuote(@Param() item: { tenant: string; sku: string }): Observable<unknown> {
    return this.service.send('quote', item).pipe(retryAfter({ retries: 10, maxWait: '5s' }));
  }

  @Post('visits/:page')
  @HttpCode(202)
  visit(@Param('page') page: string): Observable<unknown> {
    return this.service.emit('visited', { page });
  }

  @Get('visits')
  visits(): Observable<unknown> {
    return this.service.send('visits', {});
  }
}
