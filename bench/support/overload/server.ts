import { type IncomingMessage, type ServerResponse } from 'node:http';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Controller, Get, Module, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimitConfig, RateLimitModule } from 'nestjs-weir';
import { type Platform } from '../http/server.js';

/** The gate between a server and more requests than it can serve. */
export type Law = 'nothing' | 'under-pressure style' | 'line';

export interface OverloadServerOptions {
  readonly platform: Platform;
  readonly law: Law;
  /** Everything is refused: one request is held, and one waits. */
  readonly isShut?: boolean;
}

/** Processor time of one answer. */
export const WORK_MS = 4;
/** The route on which the price of an answer is found out. */
export const ALONE = 'alone';
/** Settings that fastify/under-pressure often has. */
const MOST_DELAY_MS = 100;
const SAMPLE_MS = 100;

function work(): object {
  const end = performance.now() + WORK_MS;
  let sum = 0;
  while (performance.now() < end) for (let i = 0; i < 1000; i++) sum += Math.sqrt(i);
  return { sum };
}

@Controller()
class PageController {
  @Get()
  page(): object {
    return work();
  }

  /** The same for a single caller, whom no gate refuses. */
  @Get(ALONE)
  alone(): object {
    return work();
  }

  @Get('empty')
  empty(): object {
    return { hello: 'world' };
  }

  @Get('hold')
  hold(): Promise<never> {
    return new Promise(() => {});
  }
}

export interface Served {
  readonly url: string;
  /** Delay of the loop since the last call, in milliseconds. */
  readonly delayP99: () => number;
  readonly switchLine: (enabled: boolean) => Promise<void>;
}

export async function serve({ platform, law, isShut }: OverloadServerOptions): Promise<Served> {
  const line = {
    enabled: law === 'line',
    ...(isShut && ({ maxInFlight: 1, maxWaiting: 1, interval: '1h' } as const)),
  };
  @Module({
    imports: [
      RateLimitModule.forRoot({
        tier: ({ headers }) => headers['x-tier'] as string | undefined,
        overload: line,
      }),
    ],
    controllers: [PageController],
  })
  class AppModule {}
  const app: INestApplication =
    platform === 'express'
      ? await NestFactory.create(AppModule as Type, { logger: false })
      : await NestFactory.create(AppModule as Type, new FastifyAdapter(), { logger: false });
  if (law === 'under-pressure style') refuseByDelay(app);
  await app.listen(0, '127.0.0.1');
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  const delayP99 = (): number => {
    const p99 = histogram.percentile(99) / 1e6;
    histogram.reset();
    return p99;
  };
  const config = app.get(RateLimitConfig);
  const switchLine = async (enabled: boolean): Promise<void> => {
    await config.update({ overload: { enabled } });
  };
  return { url: await app.getUrl(), delayP99, switchLine };
}

/** All are refused while the loop was late at the last sample. */
function refuseByDelay(app: INestApplication): void {
  let isLate = false;
  let due = performance.now() + SAMPLE_MS;
  setInterval(() => {
    isLate = performance.now() - due > MOST_DELAY_MS;
    due = performance.now() + SAMPLE_MS;
  }, SAMPLE_MS);
  app.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
    if (!isLate || request.url === `/${ALONE}`) return next();
    response.statusCode = 503;
    response.end();
  });
}
