import {
  Controller,
  Get,
  Module,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type INestApplication,
  type ModuleMetadata,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { Redis } from 'ioredis';
import { Degradation, Degrade, RateLimit, RateLimitModule } from 'nestjs-weir';
import { type Server } from 'node:http';
import { type Observable } from 'rxjs';
import { HandWrittenGuard } from '../../contenders/guard/hand-written.js';

export type Platform = 'express' | 'fastify';

/** How the one route of a server is limited. */
export type Variant =
  | 'no limits'
  | 'hand-written'
  | 'weir'
  | 'weir, a Redis client beside it'
  | 'weir on redis'
  | 'weir, route without limits'
  | 'weir, answers not timed'
  | 'weir with overload'
  | 'no-op interceptor'
  | 'degrade'
  | 'degrade on redis'
  | 'degrade on redis, level 1'
  | 'ThrottlerGuard';

export interface ServerOptions {
  readonly platform: Platform;
  readonly variant: Variant;
  readonly redisUrl: string;
}

/** Far above what is sent, so that nothing is denied; the throttler walks what came in a second. */
const LIMIT = 1_000_000;
const PERIOD_MS = 1000;
/** The period at which a lease is renewed. */
const LEASE_CALL_MS = 50;
/** As Fastify has it. Express' 5 s can pass while callgrind begins to count on a busy machine, and the one connection is gone. */
const KEEP_ALIVE_MS = 72_000;
/** The throttler keeps every hit of its period and walks them all: a short one is a kindness. */
const THROTTLER_PERIOD_MS = 10;

/** An interceptor that does nothing: the price of any. */
class NoInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle();
  }
}

interface Parts {
  readonly metadata: ModuleMetadata;
  readonly decorate?: MethodDecorator;
  /** Before the first request. */
  readonly prepare?: (app: INestApplication) => Promise<void>;
}

const PAGE = 'page';

/** The handler is not asked any more: the shared cache has the answer. */
async function onlyFromRedis(app: INestApplication): Promise<void> {
  const degradation = app.get(Degradation);
  for (let failed = 1; failed > 0;) {
    const [warmed] = await degradation.warm(PAGE);
    failed = warmed!.failed;
    if (failed > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  degradation.force(PAGE, 1);
}

function partsOf({ variant, redisUrl }: ServerOptions): Parts {
  const policies = { api: { rate: LIMIT, period: PERIOD_MS } };
  const onMemory = { imports: [RateLimitModule.forRoot({ policies })] };
  switch (variant) {
    case 'no limits':
      return { metadata: {} };
    case 'hand-written': {
      const guard = new HandWrittenGuard({ limit: LIMIT, periodMs: PERIOD_MS, keys: 1 });
      return { metadata: {}, decorate: UseGuards(guard) };
    }
    case 'weir':
      return { metadata: onMemory, decorate: RateLimit('api') };
    case 'weir, a Redis client beside it': {
      const client = new Redis(redisUrl);
      setInterval(() => void client.ping(), LEASE_CALL_MS);
      return { metadata: onMemory, decorate: RateLimit('api') };
    }
    case 'weir, answers not timed': {
      const monitor = { responses: false };
      const metadata = { imports: [RateLimitModule.forRoot({ policies, monitor })] };
      return { metadata, decorate: RateLimit('api') };
    }
    case 'weir with overload': {
      const overload = { enabled: true };
      const metadata = { imports: [RateLimitModule.forRoot({ policies, overload })] };
      return { metadata, decorate: RateLimit('api') };
    }
    case 'weir, route without limits':
      return { metadata: onMemory };
    case 'weir on redis': {
      const store = { type: 'redis', url: redisUrl } as const;
      const metadata = { imports: [RateLimitModule.forRoot({ policies, store })] };
      return { metadata, decorate: RateLimit('api') };
    }
    case 'no-op interceptor':
      return { metadata: onMemory, decorate: UseInterceptors(NoInterceptor) };
    case 'degrade':
      return { metadata: onMemory, decorate: Degrade() };
    case 'degrade on redis': {
      const store = { type: 'redis', url: redisUrl } as const;
      return {
        metadata: { imports: [RateLimitModule.forRoot({ store, service: 'bench' })] },
        decorate: Degrade(),
      };
    }
    case 'degrade on redis, level 1': {
      const store = { type: 'redis', url: redisUrl } as const;
      const load = (): object => ({ hello: 'world' });
      return {
        metadata: { imports: [RateLimitModule.forRoot({ store, service: 'bench' })] },
        decorate: Degrade({ resource: PAGE, level1: '1h', level2: false, warm: () => [{ load }] }),
        prepare: onlyFromRedis,
      };
    }
    case 'ThrottlerGuard': {
      const throttlers = [{ limit: LIMIT, ttl: THROTTLER_PERIOD_MS }];
      const providers = [{ provide: APP_GUARD, useClass: ThrottlerGuard }];
      return { metadata: { imports: [ThrottlerModule.forRoot({ throttlers })], providers } };
    }
  }
}

/** A Nest application with one route; resolves to its address. */
export async function serve(options: ServerOptions): Promise<string> {
  const { metadata, decorate, prepare } = partsOf(options);
  class OneController {
    hello(): object {
      return { hello: 'world' };
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(OneController.prototype, 'hello')!;
  decorate?.(OneController.prototype, 'hello', descriptor);
  Get()(OneController.prototype, 'hello', descriptor);
  Controller()(OneController);
  class OneModule {}
  Module({ ...metadata, controllers: [OneController] })(OneModule);
  const app: INestApplication =
    options.platform === 'express'
      ? await NestFactory.create(OneModule as Type, { logger: false })
      : await NestFactory.create(OneModule as Type, new FastifyAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  (app.getHttpServer() as Server).keepAliveTimeout = KEEP_ALIVE_MS;
  await prepare?.(app);
  return app.getUrl();
}
