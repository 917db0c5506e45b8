// The same test for every test runner: test/package runs it with each of them, in applications of their own.
import 'reflect-metadata';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimit, RateLimitModule } from 'nestjs-weir';
import { ManualClock, rateLimitMatchers, type RateLimitMatchers } from 'nestjs-weir/testing';

const clock = new ManualClock();

@Controller()
class HelloController {
  @Get()
  @RateLimit('once')
  hello(): string {
    return 'hello';
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ clock, policies: { once: { rate: '1/min' } } })],
  controllers: [HelloController],
})
class AppModule {}

expect.extend(rateLimitMatchers);

it('limits a route, and lets it go on when its time has come', async () => {
  const app = await NestFactory.create(AppModule, { logger: false });
  try {
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    expect((await fetch(url)).status).toBe(200);
    const denied = expect(await fetch(url)) as unknown as RateLimitMatchers;
    await denied.toBeRateLimited({ policy: 'once', retryAfterMs: 60_000 });
    clock.advance(60_000);
    expect((await fetch(url)).status).toBe(200);
  } finally {
    await app.close();
  }
});
