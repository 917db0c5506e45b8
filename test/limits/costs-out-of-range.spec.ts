import { Controller, Get, type Type } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  DroppedEvents,
  RateLimit,
  RateLimitCost,
  RateLimiter,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { io } from 'socket.io-client';
import { until } from '../support/index.js';
import { PLATFORMS, startHttp } from '../support/nest/http-apps.js';
import { startMessages } from '../support/nest/message-app.js';
import { WIRES } from '../support/nest/message-wires.js';
import { header, HOUR, Log, WatchedServer } from './watched-server.js';

@Controller()
class Routes {
  @Get('cost')
  @RateLimit('many', { quota: false })
  @RateLimit('chosen-cost', { quota: false })
  cost(): string {
    return 'ok';
  }

  @Get('quota')
  @RateLimit('many')
  @RateLimitCost((context) => Number(header('x-cost')(context) ?? 1))
  quota(): string {
    return 'ok';
  }
}

const costs: Record<string, unknown> = {
  NaN: NaN,
  '-1': -1,
  '1.5': 1.5,
  huge: 1e12,
  infinite: Infinity,
  text: 'many',
  object: {},
};

const options: RateLimitModuleInput = {
  policies: {
    many: { rate: 1000, ...HOUR },
    'chosen-cost': {
      ...{ rate: 10, ...HOUR },
      cost: (context) => {
        const name = header('x-cost')(context)!;
        if (name === 'throws') throw new Error(`no price for ${name}`);
        return costs[name] as number;
      },
    },
  },
  quota: { apps: { shop: { guaranteed: 100 } }, maxCost: 5 },
  app: (context) => header('x-app')(context) ?? 'shop',
};

describe.each(PLATFORMS)('callers of %s', (platform) => {
  let server: WatchedServer;

  beforeAll(async () => {
    server = await WatchedServer.start(platform, Routes, options);
  });

  beforeEach(() => server.renew());

  afterAll(async () => {
    expect(await server.close()).toEqual([]);
  });

  it('a cost that cannot be is denied with 413, and nothing is taken', async () => {
    const before = await server.remaining('many', '127.0.0.1');
    const names = [...Object.keys(costs), 'throws'];
    const answers = await server.statuses('/cost', ...names.map((name) => ({ 'x-cost': name })));
    expect(answers).toEqual(names.map(() => 413));
    expect(await server.remaining('many', '127.0.0.1')).toBe(before);
    const denied = await server.http.get('/cost', { 'x-cost': '-1' });
    expect(denied.headers.get('content-type')).toMatch('application/problem+json');
    expect(denied.headers.get('retry-after')).toBeNull();
    expect(await denied.json()).toMatchObject({
      ...{ status: 413, code: 'COST_OUT_OF_RANGE' },
      message: 'It cannot be told what this request costs',
    });
    expect(server.faults()).toMatchObject({ 'Routes.cost: 413': names.length + 1 });
    expect(server.log.warnings.filter((text) => text.includes('refused with'))).toEqual([
      expect.stringMatching(
        /^Routes\.cost: refused with COST_OUT_OF_RANGE .*a whole number, or 0 for a free request/,
      ),
    ]);
  });

  it('neither is one above maxCost, nor an app that nobody knows', async () => {
    const before = await server.remaining('many', '127.0.0.1');
    const bad = ['6', '-1', 'NaN', '1e9'].map((cost) => ({ 'x-cost': cost }));
    expect(await server.statuses('/quota', { 'x-cost': '5' }, ...bad)).toEqual([
      200, 413, 413, 413, 413,
    ]);
    const denied = await server.http.get('/quota', { 'x-cost': '6' });
    const { message } = (await denied.json()) as { message: string };
    expect(message).toBe('This request costs more than the limit ever allows');
    const apps = ['nobody', '__proto__', ''].map((app) => ({ 'x-app': app }));
    expect(await server.statuses('/quota', ...apps)).toEqual([400, 400, 400]);
    expect(await server.remaining('many', '127.0.0.1')).toBe(before - 5);
    expect(server.log.warnings).toHaveLength(2);
  });
});

let handled = 0;

@Controller()
class Messages {
  @MessagePattern('cost')
  @RateLimit('many')
  @RateLimitCost((context) => context.switchToRpc().getData<{ cost: number }>().cost)
  cost(): object {
    return { ok: true };
  }

  @EventPattern('cost-event')
  @RateLimit('many')
  @RateLimitCost((context) => context.switchToRpc().getData<{ cost: number }>().cost)
  event(_data: unknown): void {
    handled++;
  }
}

it('messages: a cost or an app that cannot be is told as an error, and an event is dropped', async () => {
  const log = new Log();
  const app = await startMessages(await WIRES['tcp']!(), 'stand-alone', {
    imports: [
      RateLimitModule.forRoot({
        policies: { many: { rate: 100, ...HOUR, key: 'global' } },
        quota: { apps: { shop: { guaranteed: 100 } } },
        app: (context) => context.switchToRpc().getData<{ app?: string }>().app ?? 'shop',
      }),
    ],
    controllers: [Messages],
  });
  log.start();
  handled = 0;
  const send = (data: object): Promise<unknown> =>
    Promise.resolve(app.send('cost', data)).catch((error: unknown) => error);
  expect(await send({ cost: 1 })).toEqual({ ok: true });
  for (const cost of [-1, 'x', 2]) {
    expect(await send({ cost })).toMatchObject({ statusCode: 413, code: 'COST_OUT_OF_RANGE' });
  }
  expect(await send({ cost: 1, app: 'nobody' })).toMatchObject({ statusCode: 400 });
  await app.emit('cost-event', { cost: -1 });
  await until(() => Promise.resolve(app.app.get(DroppedEvents).total === 1), { what: 'the event' });
  const { remaining } = await app.app.get(RateLimiter).peek({ policy: 'many', key: 'global' });
  await app.close();
  expect([remaining, handled, log.stop()]).toEqual([99, 0, []]);
});

@WebSocketGateway()
class Gateway {
  @SubscribeMessage('cost')
  @RateLimit('many')
  @RateLimitCost((context) => context.switchToWs().getData<{ cost: number }>().cost)
  cost(): object {
    return { ok: true };
  }
}

it('gateways: a cost that cannot be is acknowledged as an error', async () => {
  const log = new Log();
  const http = await startHttp('express', {
    imports: [RateLimitModule.forRoot({ policies: { many: { rate: 100, ...HOUR } } })],
    providers: [Gateway],
  });
  log.start();
  const socket = io(http.url, { transports: ['websocket'] });
  const ask = (cost: unknown): Promise<unknown> => socket.emitWithAck('cost', { cost });
  expect(await ask(1)).toEqual({ ok: true });
  for (const cost of [-1, 1.5, 'x', 101]) {
    expect(await ask(cost)).toMatchObject({ status: 'error', code: 'COST_OUT_OF_RANGE' });
  }
  socket.close();
  await http.close();
  expect(log.stop()).toEqual([]);
});

describe('at start', () => {
  it.each<[string, MethodDecorator[], boolean]>([
    ['@RateLimitCost(5)', [RateLimit(), RateLimitCost(5)], true],
    ['the cost of a policy', [RateLimit('five')], true],
    ['the cost of an inline policy', [RateLimit({ rate: 10, cost: 5 })], true],
    ['@RateLimitCost(5) beside a policy alone', [RateLimit('five', { quota: false })], false],
    ['@RateLimitCost(4)', [RateLimit(), RateLimitCost(4)], false],
  ])('%s against maxCost', async (_, decorators, isRefused) => {
    const module = RateLimitModule.forRoot({
      policies: { five: { rate: 10, cost: 5 } },
      quota: { apps: { shop: { guaranteed: 100 } }, maxCost: 4 },
      app: 'shop',
    });
    const started = startHttp('express', {
      imports: [module],
      controllers: [costlyWith(decorators)],
    });
    if (isRefused) await expect(started).rejects.toThrow(/at most 4.*quota.maxCost/);
    else await (await started).close();
  });

  it.each<[string, MethodDecorator[], boolean]>([
    ['a policy', [RateLimit('ten'), RateLimitCost(11)], true],
    ['an inline policy', [RateLimit({ rate: 10 }), RateLimitCost(11)], true],
    ['one of two policies', [RateLimit('ten'), RateLimit('tiered'), RateLimitCost(11)], true],
    ['what only a tier holds', [RateLimit('tiered'), RateLimitCost(20)], false],
    ['all that it holds', [RateLimit('ten'), RateLimitCost(10)], false],
    ['what is computed', [RateLimit('ten'), RateLimitCost(() => 11)], false],
  ])('a fixed cost against %s', async (_, decorators, isRefused) => {
    const policies = { ten: { rate: 10 }, tiered: { rate: 10, tiers: { vip: { rate: 20 } } } };
    const imports = [RateLimitModule.forRoot({ policies })];
    const started = startHttp('express', { imports, controllers: [costlyWith(decorators)] });
    const told =
      /@RateLimitCost on Costly.costly: expected at most 10, .*ever holds; raise its burst, got 11/;
    if (isRefused) await expect(started).rejects.toThrow(told);
    else await (await started).close();
  });
});

/** A controller with one handler, `GET /costly`, that has these decorators. */
function costlyWith(decorators: readonly MethodDecorator[]): Type {
  @Controller()
  class Costly {
    @Get('costly')
    costly(): string {
      return 'ok';
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Costly.prototype, 'costly')!;
  for (const decorate of decorators) decorate(Costly.prototype, 'costly', descriptor);
  return Costly;
}
