import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-weir';
import { AppController } from './app.controller.js';

@Module({
  imports: [
    RateLimitModule.forRootAsync({
      useFactory: () => ({
        app: process.env.APP ?? 'checkout',
        store: {
          type: 'redis',
          url: process.env.REDIS_URL,
          // All of it runs on one machine, which is slow to answer when it is busy.
          decisionTimeout: '1s',
        },
        quota: {
          cluster: { capacity: 100 },
          apps: {
            checkout: { guaranteed: 40, burst: 80, priority: 0 },
            search: { guaranteed: 20, burst: 50, priority: 2 },
          },
        },
      }),
    }),
  ],
  controllers: [AppController],
})
export class AppModule {}
