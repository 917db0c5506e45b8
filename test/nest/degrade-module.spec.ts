import {
  Controller,
  Get,
  Inject,
  Module,
  Post,
  Res,
  Scope,
  Sse,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { NestFactory, REQUEST } from '@nestjs/core';
import { EventPattern, GrpcStreamMethod, MessagePattern } from '@nestjs/microservices';
import { WebSocketGateway, SubscribeMessage } from '@nestjs/websockets';
import { Redis } from 'ioredis';
import {
  Degradation,
  Degrade,
  degradeMessage,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type DegradeContext,
  type DegradeOptions,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { map, of, type Observable } from 'rxjs';
import { startRedis, stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';
import { moduleOptions, productsController } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { startHttp, type HttpApp } from './http-apps.js';

afterAll(stopAll);

function start(
  controllers: Type[],
  options: RateLimitModuleInput = {},
  providers: Type[] = [],
): Promise<HttpApp> {
  const imports = [RateLimitModule.forRoot(options)];
  return startHttp('express', { imports, controllers, providers });
}

describe('what cannot work is an error at start', () => {
  /** A controller with one handler. */
  function handler(options: DegradeOptions, ...decorators: MethodDecorator[]): Type {
    class Bad {
      act(): Observable<object> {
        return of({});
      }
      other(): object {
        return {};
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Bad.prototype, 'act')!;
    Degrade(options)(Bad.prototype, 'act', descriptor);
    for (const decorate of decorators) decorate(Bad.prototype, 'act', descriptor);
    Object.defineProperty(Bad.prototype, 'act', descriptor);
    Controller()(Bad);
    return Bad;
  }

  function withResponse(): Type {
    const type = handler({}, Get('x'));
    Res()(type.prototype as object, 'act', 0);
    return type;
  }

  const get = Get('x');

  it.each<[string, () => Type, RegExp]>([
    ['@Res()', withResponse, /@Degrade on Bad\.act: .*passthrough/],
    ['@Sse()', () => handler({}, Sse('x')), /one answer, not @Sse/],
    ['an event', () => handler({}, EventPattern('x') as MethodDecorator), /not @EventPattern/],
    ['a stream of requests', () => handler({}, GrpcStreamMethod('S', 'M')), /not a stream/],
    ['no handler at all', () => handler({}), /a handler of HTTP, gRPC or messages/],
    ['a method that is not there', () => handler({ level3: 'nope' }, get), /a method of Bad/],
    ['level 3 of a write', () => handler({ level3: 'other' }, Post('x')), /level4/],
    ['a cache of messages', () => handler({ level1: '1m' }, MessagePattern('x')), /idempotent/],
    ['slow after the deadline', () => handler({ slow: '3s' }, get), /less than the deadline/],
  ])('%s', async (_what, make, message) => {
    await expect(start([make()])).rejects.toThrow(message);
  });

  it('a gateway', async () => {
    @WebSocketGateway()
    class Gateway {
      @SubscribeMessage('x')
      @Degrade()
      act(): string {
        return '';
      }
    }
    class AppModule {}
    Module({ imports: [RateLimitModule.forRoot()], providers: [Gateway] })(AppModule);
    const app = await NestFactory.createApplicationContext(AppModule as Type, {
      logger: false,
      abortOnError: false,
    }).catch((error: Error) => error);
    expect(app).toMatchObject({ message: expect.stringContaining('a handler of HTTP') as string });
  });

  it.each<[Record<string, unknown>, string]>([
    [{ level5: 1 }, '@Degrade.level5'],
    [{ level1: true }, '@Degrade.level1'],
    [{ slow: 'soon' }, '@Degrade.slow'],
    [{ vary: 'accept' }, '@Degrade.vary'],
    [{ principal: 'x' }, '@Degrade.principal'],
    [{ resource: '' }, '@Degrade.resource'],
    [{ shared: 'yes' }, '@Degrade.shared'],
  ])('@Degrade(%j)', (options, field) => {
    expect(() => Degrade(options as DegradeOptions)).toThrow(
      expect.objectContaining({ field }) as Error,
    );
  });

  it.each<[Record<string, unknown>, string]>([
    [{ deadline: '1s', slow: '1s' }, 'degradation.slow'],
    [{ probes: { db: 1 } }, 'degradation.probes.db'],
    [{ level1Ttl: 'x' }, 'degradation.level1Ttl'],
    [{ nothing: 1 }, 'degradation.nothing'],
    [{ recovery: { window: 0 } }, 'degradation.recovery.window'],
  ])('degradation: %j', async (degradation, field) => {
    await expect(start([], { degradation })).rejects.toMatchObject({ field });
  });
});

describe('@Degrade on a class', () => {
  let app: HttpApp;
  let calls: string[];

  beforeAll(async () => {
    class Shout implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
        calls.push('outer');
        return next.handle().pipe(map((value: unknown) => ({ shouted: value })));
      }
    }
    @Controller()
    @Degrade({ level1: false, level2: false, level4: { from: 'class' } })
    class Shop {
      @Get('plain')
      plain(): never {
        throw new Error('down');
      }

      @Get('own')
      @UseInterceptors(Shout)
      @Degrade({ level4: { from: 'method' } })
      own(): never {
        calls.push('handler');
        throw new Error('down');
      }

      @Get('around')
      @UseInterceptors(Shout)
      around(): never {
        throw new Error('down');
      }

      @Get('by-itself')
      byItself(@Res() response: { end(text: string): void }): void {
        response.end('by itself');
      }

      @Post('write')
      write(): never {
        throw new Error('down');
      }
    }
    app = await start([Shop]);
  });

  beforeEach(() => (calls = []));
  afterAll(() => app.close());

  it('holds for its handlers', async () => {
    expect(await (await app.get('/plain')).json()).toEqual({ from: 'class' });
  });

  it('gives way to what a method says, which answers once and innermost', async () => {
    expect(await (await app.get('/own')).json()).toEqual({ shouted: { from: 'method' } });
    expect(calls).toEqual(['outer', 'handler']);
  });

  it('is within the interceptors of its methods', async () => {
    expect(await (await app.get('/around')).json()).toEqual({ shouted: { from: 'class' } });
  });

  it('leaves those alone that answer by themselves', async () => {
    expect(await (await app.get('/by-itself')).text()).toBe('by itself');
  });

  it('has words for writes', async () => {
    expect((await fetch(`${app.url}/write`, { method: 'POST' })).status).toBe(503);
  });
});

describe('methods that answer', () => {
  it('are those of the controller of the request, and are told what happened', async () => {
    let made = 0;
    @Controller({ scope: Scope.REQUEST })
    class Scoped {
      readonly number = ++made;

      constructor(@Inject(REQUEST) private readonly request: { url: string }) {}

      @Get('things/:id')
      @Degrade({ level1: false, level2: false, fallback: 'instead' })
      act(): never {
        throw new Error(`down ${this.number}`);
      }

      instead({ reason, error, level, params, query, decision }: DegradeContext): object {
        const { message } = error as Error;
        return { reason, message, level, params, query, decision, url: this.request.url, made };
      }
    }
    const app = await start([Scoped]);
    try {
      expect(await (await app.get('/things/7?a=b')).json()).toEqual({
        ...{
          reason: 'failed',
          message: 'down 1',
          level: 3,
          params: { id: '7' },
          query: { a: 'b' },
        },
        ...{ url: '/things/7?a=b', made: 1 },
      });
    } finally {
      await app.close();
    }
  });

  it('may differ for those over their limit, for failures, and for the rest', async () => {
    const stage = new Stage(new ManualClock());
    const options = { level3: 'simplified', blockHandler: 'blocked', fallback: 'failed' };
    const Products = productsController(stage, (offer) => Get(offer), options);
    Object.assign(Products.prototype as object, {
      blocked: ({ decision }: DegradeContext) => ({ name: `blocked by ${decision!.policy}` }),
      failed: ({ error }: DegradeContext) => ({ name: (error as Error).message }),
    });
    const app = await start([Products], moduleOptions(stage));
    const name = async (): Promise<string> =>
      ((await (await app.get('/nothing')).json()) as { name: string }).name;
    try {
      await app.app.get(RateLimiter).acquire({ policy: 'closed', key: 'global' });
      stage.isLimited = true;
      expect(await name()).toBe('blocked by closed');
      stage.works();
      stage.throws(new Error('down'));
      expect(await name()).toBe('down');
      app.app.get(Degradation).force('Products.nothing');
      expect(await name()).toBe('kettle, forced');
    } finally {
      await app.close();
    }
  });
});

describe('level 4 as a function', () => {
  it('may give words as well, and is asked for each request', async () => {
    @Controller()
    class Shop {
      @Get('words')
      @Degrade({ level4: ({ query }: DegradeContext) => degradeMessage(JSON.stringify(query)) })
      words(): never {
        throw new Error('down');
      }

      @Get('judged')
      @Degrade({ level4: { is: 'helped' }, isFailure: (error) => !(error as Error).message })
      judged(): never {
        throw new Error('mine');
      }
    }
    const app = await start([Shop]);
    try {
      const response = await app.get('/words?a=1');
      expect(response.status).toBe(503);
      expect(await response.json()).toMatchObject({ detail: '{"a":"1"}' });
      expect((await app.get('/judged')).status).toBe(500);
    } finally {
      await app.close();
    }
  });
});

describe('a limit for every route', () => {
  it('is handed over as well, and charged once', async () => {
    @Controller()
    class Shop {
      @Get('both')
      @RateLimit('all')
      @RateLimit('own')
      @Degrade({ level1: false, level2: false, level4: { is: 'default' } })
      both(): object {
        return { is: 'normal' };
      }

      @Get('bare')
      bare(): object {
        return {};
      }
    }
    const policies = {
      all: { rate: 2, period: '1d', key: 'global' as const },
      own: { rate: 5, period: '1d', key: 'global' as const },
    };
    const app = await start([Shop], { policies, apply: ['all'] });
    try {
      const answers: unknown[] = [];
      for (let i = 0; i < 4; i++) answers.push(await (await app.get('/both')).json());
      const [normal, other] = [{ is: 'normal' }, { is: 'default' }];
      expect(answers).toEqual([normal, normal, other, other]);
      expect((await app.get('/bare')).status).toBe(429);
      const left = await app.app.get(RateLimiter).peek({ policy: 'own', key: 'global' });
      expect(left.remaining).toBe(3);
    } finally {
      await app.close();
    }
  });
});

describe('operators', () => {
  let app: HttpApp;
  let stage: Stage;
  let degradation: Degradation;
  const mark = async (path: string): Promise<string> => {
    const { status, headers } = await app.get(path);
    return `${status} ${headers.get('x-degraded') ?? 'as it is'}`;
  };

  beforeEach(async () => {
    stage = new Stage(new ManualClock());
    const Products = productsController(stage, (offer) => Get(offer));
    app = await start([Products], moduleOptions(stage));
    degradation = app.app.get(Degradation);
    await app.app.get(RateLimiter).acquire({ policy: 'closed', key: 'global' });
  });

  afterEach(() => app.close());

  it('may pin a level', async () => {
    await app.get('/all');
    degradation.force('Products.all', 3);
    expect(await mark('/all')).toBe('200 level=3; reason=forced');
    degradation.force('Products.all');
    expect(await mark('/all')).toBe('200 level=1; reason=forced');
  });

  it.each(['disable', 'observe'] as const)('%s: as if there were no @Degrade', async (word) => {
    degradation[word]('Products.all');
    expect(await mark('/all')).toBe('200 as it is');
    stage.throws(new Error('down'));
    expect(await mark('/all')).toBe('500 as it is');
    stage.works();
    stage.isLimited = true;
    expect(await mark('/all')).toBe('429 as it is');
    degradation.resume('Products.all');
    expect(await mark('/all')).toBe('200 level=1; reason=limited');
  });

  it.each(['disable', 'observe'] as const)('%s: a slow handler is waited for', async (word) => {
    degradation[word]('Products.all');
    stage.hangs();
    const entered = stage.entered();
    const answer = mark('/all');
    await entered;
    stage.clock.advance(60_000);
    stage.finish();
    expect(await answer).toBe('200 as it is');
  });

  it('may say that a resource is in trouble', async () => {
    degradation.trip('Products.all', 'breaker');
    expect(await mark('/all')).toBe('200 level=3; reason=degraded');
    degradation.trip('Products.level4');
    const causes = degradation.stats().resources.map(({ resource, cause }) => [resource, cause]);
    expect(causes).toEqual(
      expect.arrayContaining([
        ['Products.all', 'breaker'],
        ['Products.level4', 'operator'],
      ]),
    );
  });

  it('are told of names that nobody has', () => {
    expect(() => degradation.force('Products.al')).toThrow(/one of .*Products\.all/);
  });

  it('see a resource fall and come back by the ramp', async () => {
    const states: string[] = [];
    degradation.on('state', ({ to, percent }) => states.push(`${to} ${percent}`));
    stage.throws(new Error('down'));
    for (let i = 0; i < 20; i++) await app.get('/level4');
    const calls = stage.calls;
    expect(await mark('/level4')).toBe('200 level=4; reason=degraded');
    expect(stage.calls).toBe(calls);
    stage.works();
    for (let s = 0; s < 200 && !states.includes('normal 100'); s++) {
      stage.clock.advance(1000);
      for (let i = 0; i < 3; i++) await app.get('/level4');
    }
    expect(states).toEqual([
      ...['degraded 0', 'probing 0'],
      ...['ramp 10', 'ramp 30', 'ramp 50', 'ramp 100', 'normal 100'],
    ]);
  });

  it('warm caches up before they are needed', async () => {
    const loaded: unknown[] = [];
    const report = await degradation.warmUp('Products.level2', [{}, { query: { a: '1' } }], (q) => {
      loaded.push(q);
      return { name: 'warm' };
    });
    expect([report.loaded, loaded.length]).toEqual([2, 2]);
    stage.throws(new Error('down'));
    for (const path of ['/level2', '/level2?a=1']) {
      expect(await (await app.get(path)).json()).toEqual({ name: 'warm' });
    }
    expect((await app.get('/level2?a=2')).status).toBe(500);
  });
});

describe('level 1 on Redis', () => {
  it('is shared by the processes of a fleet, survives poison, and does not miss a dead Redis', async () => {
    const redis = await startRedis();
    const store = { type: 'redis', url: redis.url } as const;
    const stages = [new Stage(new ManualClock()), new Stage(new ManualClock())];
    const apps = await Promise.all(
      stages.map((stage) =>
        start([productsController(stage, (offer) => Get(offer))], {
          ...moduleOptions(stage),
          store,
        }),
      ),
    );
    const [one, other] = apps as [HttpApp, HttpApp];
    const client = new Redis(redis.url);
    try {
      await until(async () => {
        stages[0]!.clock.advance(11_000);
        await one.get('/level1');
        return (await client.keys('weir:answer:*')).length > 0;
      });
      stages[1]!.throws(new Error('down'));
      const answer = await until(async () => {
        const response = await other.get('/level1');
        return response.ok ? response : undefined;
      });
      expect(answer.headers.get('x-degraded')).toBe('level=1; reason=failed');
      expect(await answer.json()).toMatchObject({ name: 'kettle' });

      const [key] = await client.keys('weir:answer:*');
      for (const poison of ['{', '[]', '{"v":9,"t":1,"kind":"json","body":{}}']) {
        await client.set(key!, poison);
        expect((await other.get('/level1')).status).toBe(500);
      }

      stages[1]!.works();
      await other.get('/all');
      await redis.stop();
      stages[1]!.throws(new Error('down'));
      const local = await other.get('/all');
      expect(local.headers.get('x-degraded')).toMatch(/^level=2/);
    } finally {
      client.disconnect();
      let isClosed = false;
      const closing = Promise.all(apps.map((app) => app.close())).finally(() => (isClosed = true));
      // Calls to a Redis that is gone are given up in time, and time is in our hands.
      await until(() => {
        for (const { clock } of stages) clock.advance(1000);
        return isClosed;
      });
      await closing;
    }
  });

  it('is not connected to where there is no @Degrade', async () => {
    const redis = await startRedis();
    const app = await start([], { store: { type: 'redis', url: redis.url } });
    const client = new Redis(redis.url);
    try {
      await app.app.get(RateLimiter).ready();
      // The limiter's connection, the one that hears of changes, and the one that asks.
      expect(
        String(await client.client('LIST'))
          .trim()
          .split('\n'),
      ).toHaveLength(3);
    } finally {
      client.disconnect();
      await app.close();
    }
  });
});
