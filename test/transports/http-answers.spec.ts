import { request as httpRequest } from 'node:http';
import {
  Controller,
  Get,
  HttpException,
  Injectable,
  ServiceUnavailableException,
  type ExecutionContext,
} from '@nestjs/common';
import {
  RateLimit,
  RateLimiter,
  RateLimitGuard,
  RateLimitModule,
  rateLimitOf,
  type Decision,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { startRedis, stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';

type Request = { headers: Record<string, string | undefined>; params?: unknown };
const requestOf = (context: ExecutionContext): Request =>
  context.switchToHttp().getRequest<Request>();

const userIn = (context: ExecutionContext): unknown => requestOf(context).headers['x-name'];

const seen: (Decision | undefined)[] = [];

@Controller()
class AnswersController {
  @Get('one')
  @RateLimit('one')
  one(): string {
    return 'ok';
  }

  @Get('stacked')
  @RateLimit('one')
  @RateLimit('many')
  stacked(): string {
    return 'ok';
  }

  @Get('own-words')
  @RateLimit({
    rate: 1,
    period: '1m',
    rejection: ({ retryAfterMs }, context) =>
      new ServiceUnavailableException(
        `${requestOf(context).headers['x-name']}: ${retryAfterMs / 1000} s`,
      ),
  })
  ownRejection(): string {
    return 'ok';
  }

  @Get('skip')
  @RateLimit({
    rate: 1,
    period: '1m',
    skipIf: (context) => requestOf(context).headers['x-probe'] !== undefined,
  })
  skip(): string {
    return 'ok';
  }

  @Get('skip-later')
  @RateLimit({ rate: 1, period: '1m', skipIf: (() => Promise.resolve(true)) as never })
  skipLater(): string {
    return 'ok';
  }

  @Get('tier')
  @RateLimit({
    rate: 1,
    period: '1m',
    tiers: { vip: 3 },
    tier: (context) => requestOf(context).headers['x-tier'],
  })
  tier(): string {
    return 'ok';
  }

  @Get('shaped')
  @RateLimit('shaped')
  shaped(): string {
    return 'ok';
  }
}

/** Stands for a logger: it sees the request only. */
@Injectable()
class Log {
  static keep(request: object): void {
    seen.push(rateLimitOf(request));
  }
}

describe.each(PLATFORMS)('on %s', (platform) => {
  let http: HttpApp;
  let clock: ManualClock;

  const start = async (options: RateLimitModuleInput = {}): Promise<void> => {
    clock = new ManualClock();
    const module = RateLimitModule.forRoot({
      clock,
      policies: {
        one: { rate: 1, period: '1m' },
        many: { rate: 100, period: '1m' },
        shaped: { algorithm: 'leaky-bucket', mode: 'shaper', rate: 1, burst: 3 },
      },
      ...options,
    });
    const metadata = { imports: [module], controllers: [AnswersController], providers: [Log] };
    http = await startHttp(platform, metadata);
  };
  const statuses = async (count: number, path: string, headers = {}): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push((await http.get(path, headers)).status);
    return all;
  };
  const rateHeaders = ({ headers }: Response): string[] =>
    [...headers.keys()].filter((name) => /ratelimit|retry/.test(name)).sort();

  afterEach(() => http.close());

  it('the words of the module hold for all policies but those with words of their own', async () => {
    await start({
      rejection: ({ policy }, context) =>
        context.getHandler().name === 'skip'
          ? undefined
          : new HttpException({ error: `slow down: ${policy}` }, 429),
    });
    await http.get('/one');
    const denied = await http.get('/one');
    expect([denied.status, await denied.json()]).toEqual([429, { error: 'slow down: one' }]);
    expect(denied.headers.get('retry-after')).toBe('60');
    // Names of methods are none of a caller's business.
    await http.get('/tier');
    const { error } = (await (await http.get('/tier')).json()) as { error: string };
    expect(error).toMatch(/^slow down: limit-[0-9a-f]{8}$/);
    expect(await statuses(2, '/own-words')).toEqual([200, 503]);
    await http.get('/skip');
    expect(await (await http.get('/skip')).json()).toMatchObject({ code: 'RATE_LIMITED' });
  });

  it('callers without a name are counted where the key is the user', async () => {
    await start({
      policies: {
        one: { rate: 5, period: '1m', key: 'user' },
        many: { rate: 9 },
        shaped: { rate: 9 },
      },
      user: userIn,
    });
    const names = ['ann', undefined, undefined];
    for (const name of names) await http.get('/one', name === undefined ? {} : { 'x-name': name });
    expect(http.app.get(RateLimiter).stats().policies.one).toMatchObject({
      allowed: 3,
      anonymous: 2,
    });
  });

  it('legacy headers come beside the others, for the tightest policy', async () => {
    await start({ headers: { legacy: true } });
    const { headers } = await http.get('/stacked');
    expect(headers.get('x-ratelimit-limit')).toBe('1');
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
    expect(headers.get('x-ratelimit-reset')).toBe('60');
    expect(headers.get('ratelimit')).toBe('"one";r=0;t=60, "many";r=99;t=1');
  });

  it('each kind of header can be switched off', async () => {
    await start({ headers: { draft: 'off' } });
    expect(rateHeaders(await http.get('/one'))).toEqual([]);
    expect(rateHeaders(await http.get('/one'))).toEqual(['retry-after']);
    await http.close();
    await start({ headers: { draft: 'off', retryAfter: false } });
    await http.get('/one');
    const denied = await http.get('/one');
    expect([denied.status, rateHeaders(denied)]).toEqual([429, []]);
  });

  it('problems have the base that was asked for', async () => {
    await start({ problemBase: 'https://example.com/problems/' });
    await http.get('/one');
    expect(await (await http.get('/one')).json()).toMatchObject({
      type: 'https://example.com/problems/quota-exceeded',
    });
  });

  it('a policy may deny in its own words, with the same headers', async () => {
    await start();
    await http.get('/own-words', { 'x-name': 'ann' });
    const denied = await http.get('/own-words', { 'x-name': 'ann' });
    expect(denied.status).toBe(503);
    expect(denied.headers.get('retry-after')).toBe('60');
    expect(await denied.json()).toMatchObject({ message: 'ann: 60 s' });
  });

  it('BUG-A49: waits are told in whole seconds and milliseconds, never too short', async () => {
    await start({ headers: { legacy: true } });
    await http.get('/one');
    const told: string[] = [];
    for (const micros of [400, 58_999_500, 100, 999_999]) {
      clock.advanceMicros(micros);
      const denied = await http.get('/one');
      const names = ['retry-after', 'ratelimit', 'x-ratelimit-reset'];
      told.push([denied.status, ...names.map((name) => denied.headers.get(name))].join(' '));
      const body = JSON.stringify(await denied.json());
      expect(body).not.toMatch(/\d\.\d/);
    }
    // 59.9996 s, 1.0001 s, 1 s and a microsecond before the token is there.
    expect(told).toEqual([
      '429 60 "one";r=0;t=60 60',
      '429 2 "one";r=0;t=2 2',
      '429 1 "one";r=0;t=1 1',
      '429 1 "one";r=0;t=1 1',
    ]);
    clock.advanceMicros(1);
    expect((await http.get('/one')).status).toBe(200);
  });

  it('skipIf leaves requests out, and a promise is no yes', async () => {
    await start();
    expect(await statuses(3, '/skip', { 'x-probe': '1' })).toEqual([200, 200, 200]);
    expect(await statuses(2, '/skip')).toEqual([200, 429]);
    expect(await statuses(2, '/skip-later')).toEqual([200, 429]);
  });

  it('a resolver says who has which tier', async () => {
    await start();
    expect(await statuses(4, '/tier', { 'x-tier': 'vip' })).toEqual([200, 200, 200, 429]);
    expect(await statuses(2, '/tier')).toEqual([200, 429]);
    const { headers } = await http.get('/tier', { 'x-tier': 'vip' });
    expect(headers.get('ratelimit-policy')).toMatch(/^"limit-[0-9a-f]{8}";q=3;w=60$/);
  });

  it('tells loggers what was decided', async () => {
    await start();
    seen.length = 0;
    const check = vi.spyOn(RateLimitGuard.prototype, 'check');
    await http.get('/one');
    Log.keep(check.mock.calls[0]![1].getArgByIndex<object>(0));
    check.mockRestore();
    expect(seen).toEqual([expect.objectContaining({ policy: 'one', allowed: true, remaining: 0 })]);
  });

  it('a guard answers at once in memory, with a boolean and not with a promise', async () => {
    await start();
    const check = vi.spyOn(RateLimitGuard.prototype, 'canActivate');
    await http.get('/one');
    await http.get('/one');
    const results = check.mock.results.map(({ type, value }) =>
      type === 'throw' ? 'thrown' : value,
    );
    check.mockRestore();
    expect(results).toEqual([true, 'thrown']);
  });

  it('a shaper holds requests back until it is their turn', async () => {
    await start();
    const idle = clock.pending;
    const answered: number[] = [];
    const get = (id: number) => http.get('/shaped').then(() => answered.push(id));
    await get(0);
    const first = get(1);
    await until(() => clock.pending === idle + 1);
    const second = get(2);
    await until(() => clock.pending === idle + 2);
    expect(answered).toEqual([0]);
    clock.advance(1000);
    await first;
    expect(answered).toEqual([0, 1]);
    clock.advance(1000);
    await second;
  });

  it('whoever goes away while waiting frees the slot, and gets the tokens back', async () => {
    await start();
    const limiter = http.app.get(RateLimiter);
    const left = (): number =>
      (limiter.peek({ policy: 'shaped', key: '127.0.0.1' }) as Decision).remaining;
    const idle = clock.pending;
    await http.get('/shaped');
    const before = left();
    const waiting = httpRequest(`${http.url}/shaped`).on('error', () => {});
    waiting.end();
    await until(() => clock.pending === idle + 1, { what: 'a request that waits' });
    expect(left()).toBe(before - 1);
    waiting.destroy();
    await until(() => left() === before, { what: 'the tokens to come back' });
    expect(clock.pending).toBe(idle);
  });
});

describe('on Redis', () => {
  afterAll(stopAll);

  it('denials are the same, and whoever goes away while waiting gets the tokens back', async () => {
    const redis = await startRedis();
    const http = await startHttp('express', {
      imports: [
        RateLimitModule.forRoot({
          policies: {
            one: { rate: 1 },
            many: { rate: 1 },
            shaped: { algorithm: 'leaky-bucket', mode: 'shaper', rate: '1/h', burst: 3 },
          },
          store: { type: 'redis', url: redis.url, decisionTimeout: '2s' },
        }),
      ],
      controllers: [AnswersController],
    });
    const limiter = http.app.get(RateLimiter);
    await limiter.ready();
    await http.get('/shaped');
    const left = async (): Promise<number> =>
      (await limiter.peek({ policy: 'shaped', key: '127.0.0.1' })).remaining;
    const before = await left();
    const statuses = await Promise.all([http.get('/one'), http.get('/one')]);
    expect(statuses.map(({ status }) => status).sort()).toEqual([200, 429]);
    const waiting = httpRequest(`${http.url}/shaped`).on('error', () => {});
    waiting.end();
    await until(async () => (await left()) === before - 1, { what: 'a request that waits' });
    waiting.destroy();
    await until(async () => (await left()) === before, { what: 'the tokens to come back' });
    await http.close();
    await redis.stop();
  });
});
