import { request as httpRequest } from 'node:http';
import {
  Controller,
  Get,
  Injectable,
  ServiceUnavailableException,
  type ExecutionContext,
  type INestApplication,
} from '@nestjs/common';
import { jest } from '@jest/globals';
import {
  RateLimit,
  RateLimiter,
  RateLimitGuard,
  RateLimitModule,
  RateLimitCost,
  rateLimitOf,
  RequestFaults,
  type Decision,
  type RateLimitModuleInput,
  type Tier,
} from 'nestjs-weir';
import { startRedis, stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from './http-apps.js';
import { Warnings } from './warnings.js';

type Request = { headers: Record<string, string | undefined>; params?: unknown };
const requestOf = (context: ExecutionContext): Request =>
  context.switchToHttp().getRequest<Request>();

/** Headers stand in for a token. */
const planOf = (context: ExecutionContext): Tier => {
  const plan = requestOf(context).headers['x-plan'];
  return plan === undefined
    ? undefined
    : (JSON.parse(plan, (_, value: unknown) => (value === 'NaN' ? NaN : value)) as Tier);
};

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
  ownWords(): string {
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

  @Get('plan')
  @RateLimit({ name: 'plan', rate: 1, period: '1m', tiers: { vip: 3 }, tier: planOf })
  plan(): string {
    return 'ok';
  }

  @Get('plan-later')
  @RateLimit({
    name: 'plan',
    rate: 1,
    period: '1m',
    tier: (context) => Promise.resolve(planOf(context)),
  })
  planLater(): string {
    return 'ok';
  }

  @Get('plan-early')
  @RateLimit({
    ...{ name: 'plan', rate: 1, period: '1m', key: 'global', early: true },
    tier: (context) => Promise.resolve(planOf(context)),
  })
  planEarly(): string {
    return 'ok';
  }

  @Get('plan-dear')
  @RateLimitCost(2)
  @RateLimit({ name: 'plan', rate: 2, period: '1m', tier: planOf })
  planDear(): string {
    return 'ok';
  }

  @Get('plan-chosen')
  @RateLimit((context) => ({ policy: 'one', limit: planOf(context) as never }))
  planChosen(): string {
    return 'ok';
  }

  @Get('plan-shaped')
  @RateLimit({
    ...{ algorithm: 'leaky-bucket', mode: 'shaper', rate: '1/m', maxDelay: '1ms' },
    ...{ name: 'plan', tier: planOf },
  })
  @RateLimit('many')
  planShaped(): string {
    return 'ok';
  }

  @Get('shaped')
  @RateLimit('shaped')
  shaped(): string {
    return 'ok';
  }
}

/** What a logger would do: it sees the request only. */
@Injectable()
class Log {
  static keep(request: object): void {
    seen.push(rateLimitOf(request));
  }
}

describe.each(PLATFORMS)('on %s', (platform) => {
  let http: HttpApp;
  let clock: ManualClock;

  const start = async (
    options: RateLimitModuleInput = {},
    prepare?: (app: INestApplication) => void,
  ): Promise<void> => {
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
    http = await startHttp(platform, metadata, prepare);
  };
  const statuses = async (count: number, path: string, headers = {}): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push((await http.get(path, headers)).status);
    return all;
  };
  const rateHeaders = ({ headers }: Response): string[] =>
    [...headers.keys()].filter((name) => /ratelimit|retry/.test(name)).sort();

  afterEach(() => http.close());

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

  const plan = (figures: unknown): Record<string, string> => ({
    'x-plan': JSON.stringify(figures),
  });

  it.each(['/plan', '/plan-later', '/plan-early'])(
    'a resolver says which figures: %s',
    async (path) => {
      await start();
      const two = plan({ rate: 2 });
      expect(await statuses(3, path, two)).toEqual([200, 200, 429]);
      expect(await statuses(2, path)).toEqual([200, 429]);
      expect(await statuses(4, path, plan({ rate: '3/h' }))).toEqual([200, 200, 200, 429]);
      // Two plans of one size: each is told with the time that its own bucket takes.
      const told = async (figures: unknown): Promise<string | null> =>
        (await http.get(path, plan(figures))).headers.get('ratelimit-policy');
      expect(await told({ rate: 5, burst: 60 })).toBe('"plan";q=60;w=720');
      expect(await told({ rate: 60 })).toBe('"plan";q=60;w=60');
      expect(await told({ rate: 60, period: '1h' })).toBe('"plan";q=60;w=3600');
      expect(await told(7)).toBe('"plan";q=7;w=60');
      expect(http.app.get(RequestFaults).total).toBe(0);
    },
  );

  it.each(['/plan', '/plan-later', '/plan-early'])(
    'figures that are none are the default tier, counted, and told once a minute: %s',
    async (path) => {
      const warnings = new Warnings();
      await start({}, warnings.listen);
      const bad = [
        ...[
          { rate: 0 },
          { rate: -5 },
          { rate: 'NaN' },
          { rate: 5, burst: 'NaN' },
          { rate: 'fast' },
        ],
        ...[{ rate: 5, brust: 1 }, {}, [5], true, { rate: 5, burst: null }],
      ];
      const answers: number[] = [];
      for (const figures of bad) answers.push((await http.get(path, plan(figures))).status);
      expect(answers).toEqual([200, ...bad.slice(1).map(() => 429)]);
      const faults = http.app.get(RequestFaults);
      // The guard asks again for the one that an early policy has let pass.
      expect(faults.total).toBe(bad.length + (path === '/plan-early' ? 1 : 0));
      expect(Object.keys(faults.byCause())).toEqual([expect.stringContaining(': tier failed')]);
      expect(warnings.texts.filter((text) => text.includes('tier failed'))).toHaveLength(1);
      expect(warnings.texts.join()).toContain(
        'limit.rate: expected a finite number above 0, got 0',
      );
      clock.advance(60_000);
      expect((await http.get(path, plan({ rate: 0 }))).status).toBe(200);
      expect(warnings.texts.filter((text) => text.includes('tier failed'))).toHaveLength(2);
    },
  );

  it('figures hold less than the route costs: the default tier again', async () => {
    await start();
    expect(await statuses(2, '/plan-dear', plan({ rate: 1 }))).toEqual([200, 429]);
    expect(await statuses(3, '/plan-dear', plan({ rate: 4 }))).toEqual([200, 200, 429]);
    expect(http.app.get(RequestFaults).total).toBe(2);
  });

  it('a choice brings figures, and a list of policies is all or nothing with them', async () => {
    await start();
    expect(await statuses(3, '/plan-chosen', plan({ rate: 2 }))).toEqual([200, 200, 429]);
    expect(await statuses(2, '/plan-chosen', plan({ rate: 0 }))).toEqual([200, 429]);
    const shaped = plan({ rate: '1/h', burst: 5 });
    expect(await statuses(3, '/plan-shaped', shaped)).toEqual([200, 429, 429]);
    const { headers } = await http.get('/plan-shaped', plan({ rate: '2/h' }));
    expect(headers.get('ratelimit-policy')).toBe('"plan";q=2;w=3600, "many";q=100;w=60');
    expect(headers.get('ratelimit')).toContain('"many";r=98');
  });

  it('tells loggers what was decided', async () => {
    await start();
    seen.length = 0;
    const check = jest.spyOn(RateLimitGuard.prototype, 'check');
    await http.get('/one');
    Log.keep(check.mock.calls[0]![1].getArgByIndex<object>(0));
    check.mockRestore();
    expect(seen).toEqual([expect.objectContaining({ policy: 'one', allowed: true, remaining: 0 })]);
  });

  it('a guard answers at once in memory, with a boolean and not with a promise', async () => {
    await start();
    const check = jest.spyOn(RateLimitGuard.prototype, 'canActivate');
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
