import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-weir';
import { QuotesController } from './quotes.controller.js';

@Module({
  imports: [
    RateLimitModule.forRoot({
      // Messages come from the gateway, whose address says nothing: a tenant is named in the data.
      policies: { quotes: { rate: '2/s', burst: 3, key: { param: 'tenant' } } },
    }),
  ],
  controllers: [QuotesController],
})
export class ServiceModule {}
