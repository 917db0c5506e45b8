import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-weir';
import { AppController } from './app.controller.js';
import { tierOf, userOf } from './caller.js';

@Module({
  imports: [
    RateLimitModule.forRoot({
      user: userOf,
      policies: {
        // By address, as every policy that does not say otherwise.
        hello: { rate: '5/10s' },
        report: {
          algorithm: 'sliding-window',
          period: '10s',
          tiers: { normal: 3, vip: 10 },
          defaultTier: 'normal',
          key: 'user',
          tier: tierOf,
        },
        orders: {
          algorithm: 'leaky-bucket',
          mode: 'shaper',
          rate: '2/s',
          burst: 5,
          key: 'global',
        },
      },
    }),
  ],
  controllers: [AppController],
})
export class AppModule {}
