import {
  Controller,
  Get,
  Inject,
  Injectable,
  Logger,
  Param,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import {
  RateLimit,
  RateLimitCost,
  RateLimitDecision,
  RateLimiter,
  RateLimitModule,
  rateLimitOf,
  SkipRateLimit,
  type Decision,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';

@Injectable()
class FakeAuth implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context
      .switchToHttp()
      .getRequest<{ headers: Record<string, string>; user?: unknown }>();
    const { 'x-user': id } = request.headers;
    if (id !== undefined) request.user = { id };
    return true;
  }
}

@Controller()
class ItemsController {
  constructor(@Inject(RateLimiter) readonly limiter: RateLimiter) {}

  @Get('named')
  @RateLimit('two')
  named(): string {
    return 'ok';
  }

  @Get('inline')
  @RateLimit({ rate: 1, period: '1m' })
  inline(): string {
    return 'ok';
  }

  @Get('other-inline')
  @RateLimit({ rate: 1, period: '1m' })
  otherInline(): string {
    return 'ok';
  }

  @Get('stacked')
  @RateLimit('five')
  @RateLimit({ rate: 3, period: '1m' })
  stacked(@RateLimitDecision() decision: Decision): unknown {
    return { policies: decision.decisions?.map(({ policy }) => policy) };
  }

  // Nest runs the guards of a method from the last decorator to the first.
  @Get('user')
  @RateLimit('per-user')
  @UseGuards(FakeAuth)
  user(): string {
    return 'ok';
  }

  @Get('user-too-early')
  @UseGuards(FakeAuth)
  @RateLimit('per-user')
  userTooEarly(): string {
    return 'ok';
  }

  @Get('cost/:n')
  @RateLimit('five')
  @RateLimitCost((context) =>
    Number(context.switchToHttp().getRequest<{ params: { n: string } }>().params.n),
  )
  cost(@Param('n') n: string): string {
    return n;
  }

  @Get('chosen')
  @RateLimit((context) =>
    context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-vip']
      ? undefined
      : 'two',
  )
  chosen(): string {
    return 'ok';
  }

  @Get('free')
  free(): string {
    return 'ok';
  }

  @Get('broken-key')
  @RateLimit({
    rate: 1,
    period: '1m',
    key: () => {
      throw new Error('no such thing');
    },
  })
  brokenKey(): string {
    return 'ok';
  }
}

@Controller('class')
@RateLimit('two')
class LimitedController {
  @Get('both')
  @RateLimit('two')
  both(): string {
    return 'ok';
  }

  @Get('skipped')
  @SkipRateLimit()
  skipped(): string {
    return 'ok';
  }
}

const SILENT = { log: () => {}, error: () => {}, warn: () => {} };

const BY_USER = { rate: 1, period: '1m', key: 'user' } as const;

@Controller()
@RateLimit(BY_USER)
class OnClass {
  @Get('on-class')
  @UseGuards(FakeAuth)
  get(): string {
    return 'ok';
  }
}

@Controller()
@UseGuards(FakeAuth)
@RateLimit(BY_USER)
class OnClassAbove {
  @Get('on-class-above')
  get(): string {
    return 'ok';
  }
}

@Controller()
class Unguarded {
  @Get('unguarded')
  @RateLimit(BY_USER)
  get(): string {
    return 'ok';
  }
}

describe.each(PLATFORMS)('on %s', (platform) => {
  let http: HttpApp;
  const clock = new ManualClock();

  beforeAll(async () => {
    http = await startHttp(platform, {
      imports: [
        RateLimitModule.forRoot({
          clock,
          policies: {
            two: { rate: 2, period: '1m' },
            five: { rate: 5, period: '1m' },
            'per-user': { rate: 1, period: '1m', key: 'user' },
          },
        }),
      ],
      controllers: [ItemsController, LimitedController, OnClass, OnClassAbove, Unguarded],
    });
  });

  afterEach(() => clock.advance(600_000));
  afterAll(() => http.close());

  it('denies with 429, Retry-After, the headers of the draft, and a problem', async () => {
    const first = await http.get('/named');
    expect(first.status).toBe(200);
    expect(first.headers.get('ratelimit-policy')).toBe('"two";q=2;w=60');
    expect(first.headers.get('ratelimit')).toBe('"two";r=1;t=30');
    expect(first.headers.get('x-ratelimit-limit')).toBeNull();
    await http.get('/named');
    const denied = await http.get('/named');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('30');
    expect(denied.headers.get('ratelimit')).toBe('"two";r=0;t=30');
    expect(denied.headers.get('content-type')).toMatch('application/problem+json');
    expect(await denied.json()).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too many requests',
      status: 429,
      detail: 'Too many requests. Try again in 30 s.',
      statusCode: 429,
      message: 'Too many requests',
      code: 'RATE_LIMITED',
      retryAfterMs: 30_000,
      'violated-policies': ['two'],
    });
  });

  it('gives each route its own inline policy', async () => {
    expect((await http.get('/inline')).status).toBe(200);
    expect((await http.get('/other-inline')).status).toBe(200);
    const denied = await http.get('/inline');
    expect(denied.status).toBe(429);
    // Callers learn no names of classes and methods.
    expect(denied.headers.get('ratelimit-policy')).toMatch(/^"limit-[0-9a-f]{8}";q=1;w=60$/);
  });

  it('asks all stacked policies, and tells about all', async () => {
    const response = await http.get('/stacked');
    expect(await response.json()).toEqual({ policies: ['five', 'ItemsController.stacked'] });
    expect(response.headers.get('ratelimit')).toMatch(
      /^"five";r=4;t=12, "limit-[0-9a-f]{8}";r=2;t=20$/,
    );
  });

  it('charges once what stands on class and method, and leaves out what is skipped', async () => {
    expect((await http.get('/class/both')).headers.get('ratelimit')).toBe('"two";r=1;t=30');
    const skipped = await http.get('/class/skipped');
    expect(skipped.headers.get('ratelimit')).toBeNull();
  });

  it('knows users after authentication, and callers without a name by their address', async () => {
    const statuses = [];
    for (const user of ['ann', 'bob', 'ann', undefined, undefined]) {
      const headers: Record<string, string> = user === undefined ? {} : { 'x-user': user };
      statuses.push((await http.get('/user', headers)).status);
    }
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
  });

  it('before authentication it knows addresses only, and says once how to order', async () => {
    const warned: string[] = [];
    Logger.overrideLogger({ ...SILENT, warn: (text: string) => warned.push(text) });
    const statuses = [];
    for (const user of ['ann', 'bob']) {
      const headers = { 'x-user': user, authorization: 'Bearer x' };
      statuses.push((await http.get('/user-too-early', headers)).status);
    }
    Logger.overrideLogger(false);
    expect(statuses).toEqual([200, 429]);
    expect(warned).toEqual([
      expect.stringMatching(
        /'per-user'.*before authentication.*write @RateLimit above @UseGuards;/,
      ),
    ]);
  });

  it.each([
    ['on-class', /@RateLimit stands on the class, .*: put it on the method, or authenticate/],
    ['on-class-above', /write @RateLimit above @UseGuards;/],
    ['unguarded', /No guard stands there/],
  ])('says what to do where the decorator stands: %s', async (path, hint) => {
    const warned: string[] = [];
    Logger.overrideLogger({ ...SILENT, warn: (text: string) => warned.push(text) });
    await http.get(`/${path}`, { 'x-user': 'ann', authorization: 'Bearer x' });
    Logger.overrideLogger(false);
    expect(warned).toEqual([expect.stringMatching(hint)]);
  });

  it('takes what a request costs, and nothing from one that is free', async () => {
    const statuses = [];
    for (const cost of [0, 3, 3, 2]) statuses.push((await http.get(`/cost/${cost}`)).status);
    expect(statuses).toEqual([200, 200, 429, 200]);
  });

  it('lets a function choose', async () => {
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await http.get('/chosen')).status);
    statuses.push((await http.get('/chosen', { 'x-vip': '1' })).status);
    expect(statuses).toEqual([200, 200, 429, 200]);
  });

  it('has one bucket for requests whose key fails, and neither lets them all pass nor none', async () => {
    expect((await http.get('/broken-key')).status).toBe(200);
    expect((await http.get('/broken-key')).status).toBe(429);
  });

  it('leaves other routes alone', async () => {
    const response = await http.get('/free');
    expect([response.status, response.headers.get('ratelimit')]).toEqual([200, null]);
    expect(rateLimitOf({})).toBeUndefined();
  });
});
