import { Controller, Get, HttpException, type ExecutionContext } from '@nestjs/common';
import { RateLimit, RateLimitModule, SkipRateLimit, type RateLimitModuleInput } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';

// Applications as docs/migrating-from-throttler.md makes them, with requests at the instants at which
// users of the throttler know the answer.

const WINDOW = { algorithm: 'sliding-window' } as const;
const EACH_ROUTE = { ...WINDOW, key: ['ip', 'route'] } as const;

interface HttpRequest {
  readonly ip: string;
  readonly headers: Record<string, string | undefined>;
}

const isRobot = (context: ExecutionContext): boolean =>
  context.switchToHttp().getRequest<HttpRequest>().headers['user-agent'] === 'robot';

@Controller()
class PacedController {
  @Get('usual')
  usual(): string {
    return 'ok';
  }

  @Get('paced')
  @RateLimit({ ...WINDOW, rate: '1/s' }, { instead: 'default' })
  paced(): string {
    return 'ok';
  }

  @Get('free')
  @SkipRateLimit()
  free(): string {
    return 'ok';
  }

  @Get('robots-too')
  @RateLimit({ ...WINDOW, rate: '1/min' }, { instead: 'default' })
  robotsToo(): string {
    return 'ok';
  }

  @Get('no-robots')
  @RateLimit({ ...WINDOW, rate: '1/min', skipIf: isRobot }, { instead: 'default' })
  noRobots(): string {
    return 'ok';
  }
}

@Controller('class')
@RateLimit({ name: 'low', ...WINDOW, rate: '2/10s' }, { instead: 'default' })
class LowController {
  @Get()
  low(): string {
    return 'ok';
  }

  @Get('other')
  other(): string {
    return 'ok';
  }

  @Get('higher')
  @RateLimit({ ...WINDOW, rate: '5/10s' }, { instead: 'low' })
  higher(): string {
    return 'ok';
  }

  @Get('added')
  @RateLimit({ ...WINDOW, rate: '5/10s' })
  added(): string {
    return 'ok';
  }
}

@Controller()
class ThreeController {
  @Get('three')
  three(): string {
    return 'ok';
  }

  @Get('without-short')
  @SkipRateLimit('short')
  withoutShort(): string {
    return 'ok';
  }

  @Get('short-only')
  @SkipRateLimit('medium', 'long')
  shortOnly(): string {
    return 'ok';
  }
}

const THREE = {
  short: { ...EACH_ROUTE, rate: 1, period: 1_000 },
  medium: { ...EACH_ROUTE, rate: 2, period: 5_000 },
  long: { ...EACH_ROUTE, rate: 5, period: 60_000 },
};

describe.each(PLATFORMS)('an application that was on the throttler, on %s', (platform) => {
  let http: HttpApp;
  let clock: ManualClock;

  const start = async (options: RateLimitModuleInput = {}): Promise<void> => {
    ({ http, clock } = await startMoved(platform, options));
  };
  const statuses = async (count: number, path: string, headers = {}): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push((await http.get(path, headers)).status);
    return all;
  };
  afterEach(() => http.close());

  it.each([0, 1, 50, 99, 100, 437, 999])(
    'lets one a second pass after exactly a second, %i ms into it',
    async (into) => {
      await start();
      clock.advance(into);
      for (let second = 0; second < 5; second++) {
        expect(await statuses(3, '/paced')).toEqual([200, 429, 429]);
        clock.advance(1_000);
      }
    },
  );

  it('puts the limit of a method in the place of that of its class', async () => {
    await start();
    expect(await statuses(3, '/class')).toEqual([200, 200, 429]);
    expect(await statuses(6, '/class/higher')).toEqual([200, 200, 200, 200, 200, 429]);
    expect((await http.get('/class/other')).headers.get('x-ratelimit-remaining')).toBe('1');
    clock.advance(10_000);
    expect(await statuses(6, '/class/higher')).toEqual([200, 200, 200, 200, 200, 429]);
  });

  it('asks both where the method does not say so', async () => {
    await start();
    expect(await statuses(3, '/class/added')).toEqual([200, 200, 429]);
  });

  it('counts each route by itself, and those that skip not at all', async () => {
    await start();
    expect(await statuses(6, '/usual')).toEqual([200, 200, 200, 200, 200, 429]);
    expect(await statuses(12, '/free')).toEqual(Array(12).fill(200));
    expect((await http.get('/free')).headers.get('x-ratelimit-limit')).toBeNull();
    expect(await statuses(1, '/class')).toEqual([200]);
  });

  it('takes over nothing of the policy whose place it has', async () => {
    await start();
    const robot = { 'user-agent': 'robot' };
    expect(await statuses(6, '/usual', robot)).toEqual(Array(6).fill(200));
    expect(await statuses(2, '/robots-too', robot)).toEqual([200, 429]);
    expect(await statuses(2, '/no-robots', robot)).toEqual([200, 200]);
    expect(await statuses(2, '/no-robots')).toEqual([200, 429]);
  });

  it('holds 1/s, 2/5s and 5/min together', async () => {
    await start({ policies: THREE, apply: ['short', 'medium', 'long'] });
    const at = async (ms: number): Promise<[number, string | null]> => {
      clock.advance(ms - clock.now() / 1000);
      const { status, headers } = await http.get('/three');
      return [status, headers.get('ratelimit')];
    };
    expect(await at(0)).toEqual([200, expect.stringContaining('"short";r=0')]);
    expect(await at(10)).toEqual([429, expect.stringContaining('"short";r=0')]);
    expect(await at(1_010)).toEqual([200, expect.stringContaining('"medium";r=0')]);
    expect(await at(2_020)).toEqual([429, expect.stringContaining('"medium";r=0')]);
    expect(await at(7_030)).toEqual([200, expect.stringContaining('"long";r=2')]);
    expect(await at(8_040)).toEqual([200, expect.stringContaining('"medium";r=0')]);
    expect(await at(13_050)).toEqual([200, expect.stringMatching(/"medium";r=1.*"long";r=0/)]);
    expect(await at(14_060)).toEqual([429, expect.stringContaining('"long";r=0')]);
  });

  it('skips those that a route names', async () => {
    await start({ policies: THREE, apply: ['short', 'medium', 'long'] });
    expect(await statuses(3, '/without-short')).toEqual([200, 200, 429]);
    const { headers } = await http.get('/short-only');
    expect(headers.get('ratelimit')).toMatch(/^"short";r=0;t=\d+$/);
    expect(await statuses(1, '/short-only')).toEqual([429]);
  });

  it('tells all policies in RateLimit, and the tightest without a suffix', async () => {
    await start({ policies: THREE, apply: ['short', 'medium', 'long'] });
    const { headers } = await http.get('/without-short');
    expect(headers.get('ratelimit')).toMatch(/^"medium";r=1;t=\d+, "long";r=4;t=\d+$/);
    expect(headers.get('x-ratelimit-remaining')).toBe('1');
    expect([...headers.keys()].filter((name) => /^x-ratelimit-\w+-/.test(name))).toEqual([]);
    await statuses(1, '/without-short');
    const denied = await http.get('/without-short');
    expect([...denied.headers.keys()].filter((name) => name.startsWith('retry-after'))).toEqual([
      'retry-after',
    ]);
  });

  it('rebuilds the tracker and the hits of errorMessage', async () => {
    await start({
      rejection: ({ limit, remaining }, context) => {
        const { ip } = context.switchToHttp().getRequest<HttpRequest>();
        return new HttpException(
          `${context.getHandler().name} ${ip} ${limit - remaining + 1}`,
          429,
        );
      },
    });
    await statuses(2, '/class');
    expect(await (await http.get('/class')).json()).toEqual({
      statusCode: 429,
      message: 'low 127.0.0.1 3',
    });
  });
});

async function startMoved(
  platform: Platform,
  options: RateLimitModuleInput,
): Promise<{ http: HttpApp; clock: ManualClock }> {
  const clock = new ManualClock(0);
  const policies = { default: { ...EACH_ROUTE, rate: 5, period: 60_000, skipIf: isRobot } };
  const root = RateLimitModule.forRoot({
    ...{ clock, policies, apply: ['default'], headers: { legacy: true } },
    ...options,
  });
  const isThree = options.apply !== undefined;
  const controllers = isThree ? [ThreeController] : [PacedController, LowController];
  const http = await startHttp(platform, { imports: [root], controllers });
  return { http, clock };
}
