import { type IncomingMessage, type ServerResponse } from 'node:http';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

@Controller()
class PageController {
  @Get()
  @RateLimit('page')
  page() {
    return 'ok';
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      // Instances come and go: what they count by themselves is lost with them.
      store: process.env.REDIS_URL ? { type: 'redis', url: process.env.REDIS_URL } : 'memory',
      policies: {
        // Decided by Redis each time: an instance that is frozen must not hold tokens.
        page: { rate: '2/min', sync: 'exact', failureMode: 'open' },
      },
      // Timers do not run while an instance is frozen, so nothing is watched here.
      monitor: false,
    }),
  ],
  controllers: [PageController],
})
class PageModule {}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
let started: Promise<Handler> | undefined;

/** Once for each instance, not for each call. */
async function start(): Promise<Handler> {
  const app = await NestFactory.create(PageModule, { logger: ['error'] });
  await app.init();
  return app.getHttpAdapter().getInstance() as Handler;
}

/** For Cloud Functions and Vercel as it is; for Lambda behind an adapter such as serverless-http. */
export async function handler(request: IncomingMessage, response: ServerResponse): Promise<void> {
  (await (started ??= start()))(request, response);
}
