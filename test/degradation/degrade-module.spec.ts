import {
  Body,
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
import { APP_INTERCEPTOR, NestFactory, REQUEST } from '@nestjs/core';
import { EventPattern, GrpcStreamMethod, MessagePattern } from '@nestjs/microservices';
import { WebSocketGateway, SubscribeMessage } from '@nestjs/websockets';
import {
  Degradation,
  Degrade,
  DegradeInterceptor,
  degradeMessage,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type DegradeContext,
  type DegradeOptions,
} from 'nestjs-weir';
import { map, of, type Observable } from 'rxjs';
import { ManualClock } from '../support/manual-clock.js';
import { moduleOptions, productsController, startLimited } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

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
    [
      'no handler at all',
      () => handler({}),
      /a handler of HTTP, gRPC or messages; remove it: .*s$/,
    ],
    ['a method that is not there', () => handler({ level3: 'nope' }, get), /a method of Bad/],
    ['level 3 of a write', () => handler({ level3: 'other' }, Post('x')), /level4/],
    ['a cache of messages', () => handler({ level1: '1m' }, MessagePattern('x')), /idempotent/],
    ['a value of a write', () => handler({ level4: {} }, Post('x')), /level4: .*write.*idempotent/],
    ['a value that a write makes', () => handler({ level4: () => 'x' }, Post('x')), /idempotent/],
    [
      'a shared write',
      () => handler({ shared: true }, MessagePattern('x')),
      /shared: .*idempotent/,
    ],
    ['slow after the deadline', () => handler({ slow: '3s' }, get), /less than the deadline/],
  ])('%s', async (_what, make, message) => {
    await expect(startLimited([make()])).rejects.toThrow(message);
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
    [{ credentialHeaders: 'x-a' }, 'degradation.credentialHeaders'],
    [{ credentialHeaders: ['x a'] }, 'degradation.credentialHeaders'],
    [{ credentialHeaders: ['*'] }, 'degradation.credentialHeaders'],
    [{ recovery: { window: 0 } }, 'degradation.recovery.window'],
  ])('degradation: %j', async (degradation, field) => {
    await expect(startLimited([], { degradation })).rejects.toMatchObject({ field });
  });
});

describe('@Degrade on a class', () => {
  /** A controller with a handler and with a method that is none. */
  function controller(options: DegradeOptions, decorate: MethodDecorator, own?: DegradeOptions) {
    class Orders {
      act(): object {
        return {};
      }
      other(): object {
        return {};
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'act')!;
    decorate(Orders.prototype, 'act', descriptor);
    if (own !== undefined) Degrade(own)(Orders.prototype, 'act', descriptor);
    Degrade(options)(Orders);
    Controller()(Orders);
    return Orders;
  }

  const post = Post('x');

  it.each<[string, () => Type, RegExp]>([
    [
      'a cache',
      () => controller({ level1: '1m' }, post),
      /Orders\.level1: .*all its handlers .*writes/,
    ],
    ['a value', () => controller({ level4: {} }, post), /Orders\.level4: .*idempotent/],
    ['a method', () => controller({ level3: 'other' }, MessagePattern('x')), /Orders\.level3: /],
    [
      'all, of a read that says it writes',
      () => controller({ shared: true }, Get('x'), { idempotent: false }),
      /Orders\.shared: /,
    ],
  ])(
    'has an answer for one of its handlers, and not only for writes: %s',
    async (_what, make, message) => {
      await expect(startLimited([make()])).rejects.toThrow(message);
    },
  );

  it.each<[string, () => Type]>([
    ['words', () => controller({ level4: degradeMessage('later') }, post)],
    ['nothing', () => controller({}, post)],
    ['a handler that only reads', () => controller({ level1: '1m' }, post, { idempotent: true })],
  ])('may stand over writes with %s', async (_what, make) => {
    const app = await startLimited([make()]);
    await app.close();
  });

  it.each<[string, MethodDecorator, RegExp]>([
    ['@Sse()', Sse('x'), /@Degrade on Orders: .*not @Sse/],
    ['methods alone', () => undefined, /@Degrade on Orders: .*a handler of HTTP/],
  ])(
    'stands over a handler that it is for, and not only over %s',
    async (_what, decorate, message) => {
      await expect(startLimited([controller({}, decorate)])).rejects.toThrow(message);
    },
  );

  it('that another one extends is of use where it can be', async () => {
    @Controller('writes')
    class Writes extends controller({ level1: '1m' }, post) {}
    const app = await startLimited([Writes]);
    await app.close();
  });

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
    app = await startLimited([Shop]);
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
    const app = await startLimited([Scoped]);
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
    const app = await startLimited([Products], moduleOptions(stage));
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
    const app = await startLimited([Shop]);
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
      all: { rate: 2, period: '1d', key: 'global' },
      own: { rate: 5, period: '1d', key: 'global' },
    } as const;
    const app = await startLimited([Shop], { policies, apply: ['all'] });
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

describe('notices of levels 2 and 3 (E-52, E-53)', () => {
  const NOTICE = { level2: '数据可能有延迟', level3: "评价加载中... (it's on its way)" };

  it('travel with the mark of an answer, and in its field', async () => {
    const stage = new Stage(new ManualClock());
    const more = { notice: NOTICE, field: 'degraded' };
    const Products = productsController(stage, (offer) => Get(offer), more);
    const app = await startLimited([Products], moduleOptions(stage));
    const ask = async (path: string) => {
      const response = await app.get(path);
      const [, encoded] = response.headers.get('x-degraded')!.split("; notice*=UTF-8''");
      const { degraded } = (await response.json()) as { degraded: Record<string, unknown> };
      return [degraded.level, degraded.notice, encoded && decodeURIComponent(encoded)];
    };
    try {
      for (const path of ['/level1', '/level2']) await app.get(path);
      stage.throws(new Error('down'));
      expect(await ask('/level1')).toEqual([1, undefined, undefined]);
      expect(await ask('/level2')).toEqual([2, NOTICE.level2, NOTICE.level2]);
      expect(await ask('/level3')).toEqual([3, NOTICE.level3, NOTICE.level3]);
      expect(await ask('/level4')).toEqual([4, undefined, undefined]);
      // As RFC 8187 wants it: no quote, bracket or star is left as it is.
      const mark = (await app.get('/level3')).headers.get('x-degraded')!;
      expect(mark).toMatch(/^level=3; reason=failed; notice\*=UTF-8''[\w.%-]+$/);
    } finally {
      await app.close();
    }
  });

  it.each([
    [{ level2: 'x'.repeat(201) }, '@Degrade.notice.level2'],
    [{ level3: '' }, '@Degrade.notice.level3'],
    [{ level4: 'words' }, '@Degrade.notice.level4'],
    ['later', '@Degrade.notice'],
  ])('cannot be %j', (notice, field) => {
    expect(() => Degrade({ notice: notice as never })).toThrow(field);
  });
});

describe('the interceptor mounted for all routes', () => {
  it.each(['APP_INTERCEPTOR', 'useGlobalInterceptors'])(
    'leaves the answer to the bound one: %s',
    async (way) => {
      const stage = new Stage(new ManualClock());
      const Products = productsController(stage, (offer) => Get(offer));
      @Controller()
      class Plain {
        @Get('plain')
        plain(): string {
          return 'as it is';
        }
      }
      const mounted = { provide: APP_INTERCEPTOR, useExisting: DegradeInterceptor };
      const app = await startHttp(
        'express',
        {
          imports: [RateLimitModule.forRoot(moduleOptions(stage))],
          controllers: [Products, Plain],
          providers: way === 'APP_INTERCEPTOR' ? [mounted] : [],
        },
        (nest) => {
          if (way !== 'APP_INTERCEPTOR') nest.useGlobalInterceptors(nest.get(DegradeInterceptor));
        },
      );
      try {
        expect(await (await app.get('/plain')).text()).toBe('as it is');
        await app.get('/all');
        expect(stage.calls).toBe(1);
        stage.throws(new Error('down'));
        expect((await app.get('/all')).headers.get('x-degraded')).toBe('level=1; reason=failed');
        const { resources, fallbacks } = app.app.get(Degradation).stats();
        expect(resources.find(({ resource }) => resource === 'Products.all')!.normal).toBe(2);
        expect(fallbacks.answers[1].failed).toBe(1);
        expect(stage.calls).toBe(2);
      } finally {
        await app.close();
      }
    },
  );
});

describe('an order beside a degraded page', () => {
  it('goes on as ever while the page gets fallbacks (004 L413)', async () => {
    const orders: unknown[] = [];
    @Controller()
    class Shop {
      @Get('page')
      @Degrade({ resource: 'page', level3: 'core' })
      page(): never {
        throw new Error('no reviews');
      }

      core(): object {
        return { name: 'kettle', price: 30 };
      }

      @Post('orders')
      @RateLimit({ rate: '100/s', key: 'global' })
      @Degrade({ level4: degradeMessage('Please try again later') })
      order(@Body() order: object): object {
        orders.push(order);
        return { number: orders.length };
      }
    }
    const clock = new ManualClock();
    const app = await startLimited([Shop], { clock });
    const post = (id: number): Promise<Response> =>
      fetch(`${app.url}/orders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id }),
      });
    try {
      // The page fails until its resource is in trouble; orders are not of that resource.
      for (let n = 0; n < 30; n++) {
        const page = await app.get('/page');
        expect(await page.json()).toEqual({ name: 'kettle', price: 30 });
        const order = await post(n);
        expect([order.status, order.headers.get('x-degraded')]).toEqual([201, null]);
        expect(await order.json()).toEqual({ number: n + 1 });
      }
      expect((await app.get('/page')).headers.get('x-degraded')).toBe('level=3; reason=degraded');
      expect(orders).toHaveLength(30);
    } finally {
      await app.close();
    }
  });
});
