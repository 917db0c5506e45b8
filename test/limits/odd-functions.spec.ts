import { Body, Controller, Get, HttpCode, HttpException, Logger, Post } from '@nestjs/common';
import {
  Degradation,
  Degrade,
  RateLimit,
  RateLimitCost,
  RateLimiter,
  RateLimitModule,
  RequestFaults,
  type DegradeOptions,
  type PolicyUse,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';

/** Functions of an application that say what their types do not allow, because of what callers send. */

const HOUR = { period: '1h', key: 'global' } as const;
type Sent = { ids?: string[]; cost?: unknown; app?: string; choice?: unknown };
const bodyOf = (context: { switchToHttp(): { getRequest(): unknown } }): Sent =>
  (context.switchToHttp().getRequest() as { body?: Sent }).body ?? {};

/** Values that `await` would take for a promise, and that are none. */
const ODD: Record<string, () => unknown> = {
  'a promise that rejects': () => Promise.reject(new Error('rejected')),
  'a then that throws': () => ({
    then() {
      throw new Error('then');
    },
  }),
  'a then that cannot be looked at': () => ({
    get then() {
      throw new Error('getter');
    },
  }),
};
let odd: () => unknown = () => undefined;
const oddly = (): never => odd() as never;
let part: () => unknown = () => undefined;
let words: () => unknown = () => undefined;
let isDown = false;

@Controller()
class Routes {
  @Get('key')
  @RateLimit({ rate: 2, period: '1h', key: () => oddly() })
  key(): string {
    return 'ok';
  }

  @Get('skip')
  @RateLimit({ rate: 2, ...HOUR, skipIf: () => oddly() })
  skip(): string {
    return 'ok';
  }

  @Get('cost')
  @RateLimit({ rate: 2, ...HOUR, cost: () => oddly() })
  cost(): string {
    return 'ok';
  }

  @Get('tier')
  @RateLimit({ rate: 2, ...HOUR, tier: () => oddly() })
  tier(): string {
    return 'ok';
  }

  @Get('chosen')
  @RateLimit(() => oddly())
  chosen(): string {
    return 'ok';
  }

  @Get('part')
  @RateLimit(() => part() as never)
  part(): string {
    return 'ok';
  }

  @Get('words')
  @RateLimit({ rate: 1, ...HOUR, rejection: () => words() as never })
  words(): string {
    return 'ok';
  }

  @Post('list')
  @HttpCode(200)
  @RateLimit((context): PolicyUse[] => bodyOf(context).ids!.map((key) => ({ policy: 'many', key })))
  list(): string {
    return 'ok';
  }

  @Post('any')
  @HttpCode(200)
  @RateLimit((context) => bodyOf(context).choice as never)
  @RateLimitCost((context) => (bodyOf(context).cost ?? 1) as number)
  any(@Body() _body: unknown): string {
    return 'ok';
  }

  @Post('app')
  @HttpCode(200)
  @RateLimit()
  app(): string {
    return 'ok';
  }

  @Get('failure')
  @Degrade({ resource: 'failure', isFailure: () => oddly(), level4: { from: 'level 4' } })
  failure(): string {
    throw new HttpException('not there', 404);
  }

  @Get('revived')
  @Degrade({ resource: 'revived', revive: () => oddly() })
  revived(): object {
    if (isDown) throw new HttpException('down', 503);
    return { a: 1 };
  }

  @Get('principal')
  @Degrade({ resource: 'principal', principal: () => oddly() })
  principal(): object {
    if (isDown) throw new HttpException('down', 503);
    return { a: 1 };
  }
}

const options: RateLimitModuleInput = {
  policies: { many: { rate: 1000, ...HOUR } },
  quota: { apps: { shop: { guaranteed: 1000 } } },
  app: (context) => bodyOf(context).app ?? 'shop',
};

describe.each(PLATFORMS)('on %s', (platform) => {
  const trouble: unknown[] = [];
  const onRejection = (reason: unknown): void => void trouble.push(reason);
  let http: HttpApp;

  beforeEach(async () => {
    process.on('unhandledRejection', onRejection);
    trouble.length = 0;
    isDown = false;
    const imports = [RateLimitModule.forRoot(options)];
    http = await startHttp(platform, { imports, controllers: [Routes] });
    Logger.overrideLogger({
      ...{ log: () => undefined, warn: () => undefined },
      // A handler's error behind @Degrade is what some of them are about.
      error: (...what: unknown[]) => {
        if (!String(what[0]).includes('got another answer')) trouble.push(what);
      },
    });
  });

  afterEach(async () => {
    await http.close();
    process.off('unhandledRejection', onRejection);
    Logger.overrideLogger(false);
    expect(trouble).toEqual([]);
  });

  const post = (path: string, sent: Sent): Promise<Response> =>
    fetch(http.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(sent),
    });

  describe.each(Object.keys(ODD))('%s', (name) => {
    beforeEach(() => void (odd = ODD[name]!));

    it.each(['/key', '/skip', '/cost', '/tier'])('is no value of %s', async (path) => {
      const statuses: number[] = [];
      for (let i = 0; i < 3; i++) statuses.push((await http.get(path)).status);
      expect(statuses).toEqual([200, 200, 429]);
    });

    it('is no choice', async () => {
      expect((await http.get('/chosen')).status).toBe(400);
    });

    it.each(['policy', 'key', 'tier', 'limit', 'cost'])('is no %s of a choice', async (field) => {
      part = () => ({ policy: 'many', [field]: oddly() });
      expect((await http.get('/part')).status).toBe(400);
    });

    it('is no part of a list of them, however many there are', async () => {
      part = () => ['many', oddly(), { policy: 'many', key: oddly(), cost: oddly() }];
      expect((await http.get('/part')).status).toBe(400);
    });

    it('is no rejection: callers get the usual one', async () => {
      words = ODD[name]!;
      await http.get('/words');
      const denied = await http.get('/words');
      expect([denied.status, denied.headers.get('content-type')]).toEqual([
        429,
        expect.stringContaining('problem+json'),
      ]);
    });

    it('does not say that an error is harmless', async () => {
      const answer = await http.get('/failure');
      expect([answer.status, await answer.json()]).toEqual([200, { from: 'level 4' }]);
    });

    it.each(['/revived', '/principal'])('makes no answer of %s', async (path) => {
      expect((await http.get(path)).status).toBe(200);
      isDown = true;
      const answer = await http.get(path);
      expect([answer.status, answer.headers.get('x-degraded')]).toEqual([503, null]);
      const { process } = http.app.get(Degradation).stats().caches;
      expect(process.hits).toBe(0);
    });
  });

  it('a rejection that fails is counted, and callers get the usual one', async () => {
    words = () => {
      throw new Error('no words');
    };
    await http.get('/words');
    expect((await http.get('/words')).status).toBe(429);
    expect(http.app.get(RequestFaults).byCause()).toEqual({ 'Routes.words: rejection failed': 1 });
  });

  it('a rejection may throw what it could return', async () => {
    words = () => {
      throw new HttpException('a teapot', 418);
    };
    await http.get('/words');
    expect((await http.get('/words')).status).toBe(418);
  });

  it.each<[string, unknown]>([
    ['figures', { rate: 1_000_000 }],
    ['a number', 1_000_000],
    ['a list', ['vip', 'vip']],
    ['empty', {}],
    ['true', true],
  ])('the tier of a choice is a name: of %s there is the default one', async (_, tier) => {
    const choice = { policy: 'many', key: 'k', tier };
    expect((await post('/any', { choice })).status).toBe(200);
    const { limit, remaining } = await http.app.get(RateLimiter).peek({ policy: 'many', key: 'k' });
    expect([limit, remaining]).toEqual([1000, 999]);
    expect(http.app.get(RequestFaults).byCause()).toEqual({ 'many: tier failed': 1 });
  });

  it('a choice of as many keys as a caller likes is refused', async () => {
    const ids = Array.from({ length: 12_000 }, (_, i) => i.toString(36));
    const begun = process.cpuUsage();
    expect((await post('/list', { ids })).status).toBe(413);
    const { user } = process.cpuUsage(begun);
    expect(user / 1000).toBeLessThan(500);
    expect((await post('/list', { ids: ids.slice(0, 1000) })).status).toBe(200);
    const left = await http.app.get(RateLimiter).peek({ policy: 'many', key: ids[1]! });
    expect(left.remaining).toBe(999);
  });

  // The search for passwords in a message took 15 s for each of these.
  it.each<[string, Sent, number]>([
    ['/any', { choice: '/'.repeat(90_000) }, 400],
    ['/any', { choice: { policy: '/'.repeat(90_000) } }, 400],
    ['/any', { choice: 'many', cost: '/'.repeat(90_000) }, 413],
    ['/app', { app: '/'.repeat(90_000) }, 400],
  ])('%s with 90 KB of slashes takes no time', async (path, sent, status) => {
    const begun = process.cpuUsage();
    expect((await post(path, sent)).status).toBe(status);
    const { user } = process.cpuUsage(begun);
    expect(user / 1000).toBeLessThan(500);
  });
});

describe('at start', () => {
  const asyncly = async (): Promise<never> => Promise.reject(new Error('late'));

  it.each<[string, DegradeOptions]>([
    ['principal', { principal: asyncly as never }],
    ['isFailure', { isFailure: asyncly as never }],
    ['revive', { revive: asyncly }],
  ])('an async %s of @Degrade is refused', (_, own) => {
    expect(() => Degrade(own)).toThrow('a function that is not async');
  });
});
