import { connect, type Socket as NetSocket } from 'node:net';
import { once } from 'node:events';
import {
  Controller,
  Get,
  Injectable,
  Logger,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  DroppedEvents,
  RateLimit,
  RateLimitCost,
  RateLimiter,
  RateLimitModule,
  RequestFaults,
  type PolicyUse,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { io } from 'socket.io-client';
import { until } from '../support/index.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { startMessages } from '../support/nest/message-app.js';
import { WIRES } from '../support/nest/message-wires.js';

/** Everything that goes to the log while a test runs, by level. */
class Log {
  readonly warnings: string[] = [];
  readonly errors: unknown[] = [];
  private readonly rejections: unknown[] = [];
  private readonly onRejection = (reason: unknown): void => void this.rejections.push(reason);

  start(): void {
    process.on('unhandledRejection', this.onRejection);
    Logger.overrideLogger({
      log: () => undefined,
      warn: (text: string) => this.warnings.push(text),
      error: (...what: unknown[]) => this.errors.push(what),
    });
  }

  /** Answers that no caller may cause, whatever it sends. */
  stop(): unknown[] {
    process.off('unhandledRejection', this.onRejection);
    Logger.overrideLogger(false);
    return [...this.rejections, ...this.errors];
  }
}

const HOUR = { period: '1h' } as const;

type Request = { headers: Record<string, string>; user?: unknown };
const requestOf = (context: ExecutionContext): Request =>
  context.switchToHttp().getRequest<Request>();
const header = (name: string) => (context: ExecutionContext) => requestOf(context).headers[name];

/** A function that is not declared async, and still gives a promise. */
const promised =
  <T>(value: () => T) =>
  () =>
    Promise.resolve().then(value) as unknown as never;
const rejected = promised(() => {
  throw new Error('bad token');
});

@Injectable()
class Auth implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    requestOf(context).user = { id: requestOf(context).headers['x-user'] };
    return true;
  }
}

@Injectable()
class SlowAuth implements CanActivate {
  static entered: (() => void) | undefined;
  static go: Promise<void> = Promise.resolve();

  async canActivate(): Promise<boolean> {
    SlowAuth.entered?.();
    await SlowAuth.go;
    return true;
  }
}

let handled = 0;

@Controller()
class Priced {
  @Get('priced')
  @RateLimit('priced')
  @UseGuards(Auth)
  priced(): string {
    return 'ok';
  }
}

@Controller()
class Routes {
  @Get('two-keys')
  @RateLimit(
    (context): PolicyUse[] => [
      { policy: 'three', key: header('x-user')(context) },
      { policy: 'three', key: 'tenant' },
    ],
    { quota: false },
  )
  twoKeys(): string {
    return 'ok';
  }

  @Get('by-user')
  @RateLimit('per-user', { quota: false })
  byUser(): string {
    return 'ok';
  }

  @Get('by-tier')
  @RateLimit('tiered', { quota: false })
  byTier(): string {
    return 'ok';
  }

  @Get('key')
  @RateLimit('key-promised', { quota: false })
  key(): string {
    return 'ok';
  }

  @Get('skip')
  @RateLimit('skip-promised', { quota: false })
  skip(): string {
    return 'ok';
  }

  @Get('cost-promised')
  @RateLimit('cost-promised', { quota: false })
  costPromised(): string {
    return 'ok';
  }

  @Get('choice-promised')
  @RateLimit(rejected, { quota: false })
  choicePromised(): string {
    return 'ok';
  }

  @Get('choice')
  @RateLimit((context) => header('x-policy')(context), { quota: false })
  choice(): string {
    return 'ok';
  }

  @Get('inline')
  @RateLimit({ rate: 1, ...HOUR, quota: false })
  secretMethod(): string {
    return 'ok';
  }

  @Get('named-inline')
  @RateLimit({ rate: 1, ...HOUR, name: 'search', quota: false })
  otherSecret(): string {
    return 'ok';
  }

  @Get('words')
  @RateLimit('throwing', { quota: false })
  words(): string {
    return 'ok';
  }

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

  @Get('gone')
  @RateLimit('three', { quota: false })
  @UseGuards(SlowAuth)
  gone(): string {
    handled++;
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
    three: { rate: 3, ...HOUR },
    priced: { rate: 10, ...HOUR, cost: (context) => (requestOf(context).user ? 5 : 2) },
    'per-user': { rate: 2, ...HOUR, key: 'user' },
    tiered: {
      ...{ rate: 1, ...HOUR, tiers: { vip: { rate: 3, ...HOUR } } },
      tier: (context) =>
        header('x-tier')(context) === 'fails'
          ? Promise.reject(new Error('no database'))
          : Promise.resolve(header('x-tier')(context)),
    },
    'key-promised': { rate: 2, ...HOUR, key: rejected },
    'skip-promised': { rate: 2, ...HOUR, skipIf: rejected },
    'cost-promised': { rate: 2, ...HOUR, cost: rejected },
    'chosen-cost': {
      ...{ rate: 10, ...HOUR },
      cost: (context) => {
        const name = header('x-cost')(context)!;
        if (name === 'throws') throw new Error(`no price for ${name}`);
        return costs[name] as number;
      },
    },
    throwing: {
      ...{ rate: 1000, ...HOUR },
      key: (context) => {
        throw new Error(decodeURIComponent(header('x-words')(context)!));
      },
    },
  },
  quota: { apps: { shop: { guaranteed: 100 } }, maxCost: 5 },
  app: (context) => header('x-app')(context) ?? 'shop',
  user: (context) => {
    const token = header('x-token')(context);
    if (token === undefined) return requestOf(context).user;
    return token === 'bad' ? Promise.reject(new Error('bad token')) : Promise.resolve(token);
  },
};

describe.each(PLATFORMS)('callers of %s who mean harm', (platform) => {
  const clock = new ManualClock();
  const log = new Log();
  let http: HttpApp;

  beforeAll(async () => {
    log.start();
    const imports = [RateLimitModule.forRoot({ clock, ...options })];
    http = await startHttp(platform, { imports, controllers: [Routes] }, (app) =>
      app.useLogger(['warn', 'error']),
    );
    log.start();
  });

  beforeEach(() => {
    clock.advance(3_600_000);
    log.warnings.length = 0;
    handled = 0;
  });

  afterAll(async () => {
    await http.close();
    expect(log.stop()).toEqual([]);
  });

  const statuses = async (path: string, ...requests: Record<string, string>[]) => {
    const all: number[] = [];
    for (const headers of requests) all.push((await http.get(path, headers)).status);
    return all;
  };
  const remaining = async (policy: string, key: string): Promise<number> =>
    (await http.app.get(RateLimiter).peek({ policy, key })).remaining;
  const faults = (): Readonly<Record<string, number>> => http.app.get(RequestFaults).byCause();

  it('one policy with two keys is two charges', async () => {
    const users = Array.from({ length: 8 }, (_, i) => ({ 'x-user': `u${i}` }));
    expect(await statuses('/two-keys', ...users)).toEqual([200, 200, 200, 429, 429, 429, 429, 429]);
    expect(await remaining('three', 'u0')).toBe(2);
    expect(await remaining('three', 'u5')).toBe(3);
    const { headers } = await http.get('/two-keys', { 'x-user': 'u9' });
    expect(headers.get('ratelimit')).toMatch(/^"three";r=\d;t=\d+$/);
  });

  it('a user is waited for; one that is refused is anonymous, and counted', async () => {
    const [ada, bob, bad] = ['ada', 'bob', 'bad'].map((name) => ({ 'x-token': name }));
    expect(await statuses('/by-user', ada!, ada!, ada!, bob!)).toEqual([200, 200, 429, 200]);
    expect(await statuses('/by-user', bad!, bad!, bad!)).toEqual([200, 200, 429]);
    expect(await remaining('per-user', 'anonymous:127.0.0.1')).toBe(0);
    expect(faults()).toMatchObject({ 'user: failed': 3 });
    expect(log.warnings).toEqual([
      expect.stringMatching(/'user' failed \("bad token"\).*anonymous/),
    ]);
  });

  it('a tier is waited for; one that cannot be had is the default, and counted', async () => {
    const [vip, fails] = ['vip', 'fails'].map((name) => ({ 'x-tier': name }));
    expect(await statuses('/by-tier', vip!, vip!, vip!, vip!)).toEqual([200, 200, 200, 429]);
    expect(await statuses('/by-tier', fails!, fails!)).toEqual([200, 429]);
    expect(faults()).toMatchObject({ 'tiered: tier failed': 2 });
  });

  it.each(['/key', '/skip', '/cost-promised'])(
    'a promise that rejects, where a value is expected: %s',
    async (path) => {
      const answers = await statuses(path, {}, {}, {}, {});
      expect(answers).toEqual([200, 200, 429, 429]);
      await settle();
      expect(log.warnings.length).toBeLessThanOrEqual(1);
    },
  );

  it('a choice that is a promise, or names what is not there, is refused', async () => {
    const answers = await statuses('/choice-promised', {}, {});
    const names = ['nobody', '__proto__', 'toString', 'x'.repeat(5000)];
    answers.push(...(await statuses('/choice', ...names.map((name) => ({ 'x-policy': name })))));
    expect(answers).toEqual(Array(6).fill(400));
    expect(await statuses('/choice', { 'x-policy': 'many' })).toEqual([200]);
    expect(log.warnings).toHaveLength(2);
    expect(Math.max(...log.warnings.map(({ length }) => length))).toBeLessThan(250);
  });

  it('a cost that cannot be is denied with 413, and nothing is taken', async () => {
    const before = await remaining('many', '127.0.0.1');
    const names = [...Object.keys(costs), 'throws'];
    const answers = await statuses('/cost', ...names.map((name) => ({ 'x-cost': name })));
    expect(answers).toEqual(names.map(() => 413));
    expect(await remaining('many', '127.0.0.1')).toBe(before);
    const denied = await http.get('/cost', { 'x-cost': '-1' });
    expect(denied.headers.get('content-type')).toMatch('application/problem+json');
    expect(denied.headers.get('retry-after')).toBeNull();
    expect(await denied.json()).toMatchObject({ status: 413, code: 'COST_OUT_OF_RANGE' });
    expect(faults()).toMatchObject({ 'Routes.cost: 413': names.length + 1 });
    expect(log.warnings.filter((text) => text.includes('413'))).toHaveLength(1);
  });

  it('neither is one above maxCost, nor an app that nobody knows', async () => {
    const before = await remaining('many', '127.0.0.1');
    const bad = ['6', '-1', 'NaN', '1e9'].map((cost) => ({ 'x-cost': cost }));
    expect(await statuses('/quota', { 'x-cost': '5' }, ...bad)).toEqual([200, 413, 413, 413, 413]);
    const apps = ['nobody', '__proto__', ''].map((app) => ({ 'x-app': app }));
    expect(await statuses('/quota', ...apps)).toEqual([400, 400, 400]);
    expect(await remaining('many', '127.0.0.1')).toBe(before - 5);
    expect(log.warnings).toHaveLength(2);
  });

  it.each([
    ['/inline', /^limit-[0-9a-f]{8}$/],
    ['/named-inline', /^search$/],
  ])('learn nothing of how methods are called: %s', async (path, name) => {
    await http.get(path);
    const denied = await http.get(path);
    const [, policy] = /^"([^"]+)"/.exec(denied.headers.get('ratelimit-policy')!)!;
    expect(policy).toMatch(name);
    const told = JSON.stringify([...denied.headers, await denied.text()]);
    expect(told).not.toMatch(/Routes|secret/i);
    expect(told).toContain('violated-policies');
    const { policies } = http.app.get(RateLimiter).stats();
    expect(Object.keys(policies)).toEqual(expect.arrayContaining(['Routes.secretMethod']));
  });

  it('words of a caller are cut and quoted, and fill neither log nor memory', async () => {
    for (let i = 0; i < 100; i++) {
      const words = encodeURIComponent(
        `bad ${i}\n[Nest] forged\u001b[2J\u009b\u202e${'x'.repeat(500)}`,
      );
      expect((await http.get('/words', { 'x-words': words })).status).toBe(200);
    }
    const [line, ...more] = log.warnings;
    expect(more).toEqual([]);
    expect(line).toMatch(
      /^Policy 'throwing': its key failed \("bad 0\\n\[Nest\] forged\\u001b\[2J\\u009b\\u202ex+…"\)/,
    );
    expect(line!.length).toBeLessThan(250);
    clock.advance(60_000);
    await http.get('/words', { 'x-words': 'once%20more' });
    expect(log.warnings[1]).toMatch(/"once more".*100 requests since the last line/);
    expect(Object.keys(faults()).filter((name) => name.startsWith('throwing'))).toHaveLength(1);
  });

  it('whoever has hung up has no second budget', async () => {
    expect(await statuses('/gone', {}, {}, {}, {})).toEqual([200, 200, 200, 429]);
    handled = 0;
    for (let i = 0; i < 3; i++) {
      let letGo = (): void => undefined;
      SlowAuth.go = new Promise((resolve) => (letGo = resolve));
      const isIn = new Promise<void>((resolve) => (SlowAuth.entered = resolve));
      const { hostname, port } = new URL(http.url);
      const socket: NetSocket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write('GET /gone HTTP/1.1\r\nhost: x\r\n\r\n');
      await isIn;
      const server = http.app.getHttpServer() as {
        getConnections(done: (e: unknown, n: number) => void): void;
      };
      const open = () =>
        new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
      const before = await open();
      socket.resetAndDestroy();
      await once(socket, 'close');
      await until(async () => (await open()) < before, { what: 'the server to notice' });
      letGo();
      await settle();
    }
    expect(handled).toBe(0);
    expect(await remaining('three', '(none)')).toBe(3);
  });
});

it('a guard that comes later and asks for more pays the difference', async () => {
  const { priced } = options.policies!;
  const http = await startHttp('express', {
    imports: [RateLimitModule.forRoot({ policies: { priced: priced! }, apply: ['priced'] })],
    controllers: [Priced],
  });
  const left: (string | null)[] = [];
  for (let i = 0; i < 3; i++) left.push((await http.get('/priced')).headers.get('ratelimit'));
  // Two by the guard of the application, three more by that of the method, once there is a user.
  expect(left.map((text) => /r=(\d+)/.exec(text!)![1])).toEqual(['5', '0', '0']);
  expect((await http.get('/priced')).status).toBe(429);
  await http.close();
});

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
  const asyncKey = (async () => Promise.resolve('k')) as never;
  const ROUTE = { rate: 1, ...HOUR };

  it.each<[string, RateLimitModuleInput]>([
    ['policies.p.key', { policies: { p: { ...ROUTE, key: asyncKey } } }],
    ['policies.p.key[1]', { policies: { p: { ...ROUTE, key: ['ip', asyncKey] } } }],
    ['policies.p.skipIf', { policies: { p: { ...ROUTE, skipIf: asyncKey } } }],
    ['policies.p.cost', { policies: { p: { ...ROUTE, cost: asyncKey } } }],
    ['app', { quota: { apps: { a: { guaranteed: 1 } } }, app: asyncKey }],
  ])('an async %s is refused', async (field, input) => {
    const imports = [RateLimitModule.forRoot(input)];
    await expect(startHttp('express', { imports })).rejects.toMatchObject({ field });
  });

  it('so are an async choice and an async cost', () => {
    expect(() => RateLimit(asyncKey)).toThrow('async');
    expect(() => RateLimitCost(asyncKey)).toThrow('async');
  });

  it.each<[string, MethodDecorator[], boolean]>([
    ['@RateLimitCost(5)', [RateLimit(), RateLimitCost(5)], true],
    ['the cost of a policy', [RateLimit('five')], true],
    ['the cost of an inline policy', [RateLimit({ rate: 10, cost: 5 })], true],
    ['@RateLimitCost(5) beside a policy alone', [RateLimit('five', { quota: false })], false],
    ['@RateLimitCost(4)', [RateLimit(), RateLimitCost(4)], false],
  ])('%s against maxCost', async (_, decorators, isRefused) => {
    @Controller()
    class Costly {
      @Get('costly')
      costly(): string {
        return 'ok';
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Costly.prototype, 'costly')!;
    for (const decorate of decorators) decorate(Costly.prototype, 'costly', descriptor);
    const module = RateLimitModule.forRoot({
      policies: { five: { rate: 10, cost: 5 } },
      quota: { apps: { shop: { guaranteed: 100 } }, maxCost: 4 },
      app: 'shop',
    });
    const started = startHttp('express', { imports: [module], controllers: [Costly] });
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
    @Controller()
    class Costly {
      @Get('costly')
      costly(): string {
        return 'ok';
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Costly.prototype, 'costly')!;
    for (const decorate of decorators) decorate(Costly.prototype, 'costly', descriptor);
    const policies = { ten: { rate: 10 }, tiered: { rate: 10, tiers: { vip: { rate: 20 } } } };
    const imports = [RateLimitModule.forRoot({ policies })];
    const started = startHttp('express', { imports, controllers: [Costly] });
    const told = /@RateLimitCost on Costly.costly: expected at most 10, .*ever holds, got 11/;
    if (isRefused) await expect(started).rejects.toThrow(told);
    else await (await started).close();
  });
});
