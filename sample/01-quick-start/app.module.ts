import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { createRateLimiter, RateLimiter } from 'nestjs-weir';
import { AppController } from './app.controller.js';

@Module({
  controllers: [AppController],
  providers: [
    {
      // An abstract class is its own token: ask for RateLimiter in any constructor.
      provide: RateLimiter,
      useFactory: () =>
        createRateLimiter({
          policies: {
            hello: { rate: '5/10s' },
            report: {
              algorithm: 'sliding-window',
              period: '10s',
              tiers: { normal: { rate: 3 }, vip: { rate: 10 } },
              defaultTier: 'normal',
            },
            orders: { algorithm: 'leaky-bucket', mode: 'shaper', rate: '2/s', burst: 5 },
          },
        }),
    },
  ],
})
export class AppModule implements OnApplicationShutdown {
  constructor(private readonly limiter: RateLimiter) {}

  async onApplicationShutdown(): Promise<void> {
    await this.limiter.close();
  }
}
