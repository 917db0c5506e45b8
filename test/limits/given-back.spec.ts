import {
  Controller,
  Get,
  UnauthorizedException,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type Type,
} from '@nestjs/common';
import {
  Degrade,
  RateLimit,
  RateLimitModule,
  SkipRateLimit,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { startRedis, stopAll, type RedisProcess } from '../support/index.js';

const auth: CanActivate = {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<{
      headers: Record<string, string | undefined>;
      user?: { id: string };
    }>();
    const { 'x-user': id } = request.headers;
    if (id === undefined) throw new UnauthorizedException();
    request.user = { id };
    return true;
  },
};

@Controller()
class ShopController {
  @Get('orders')
  @RateLimit({ rate: '2/h', key: 'user' })
  @UseGuards(auth)
  orders(): string {
    return 'ok';
  }

  @Get('kept')
  @RateLimit({ rate: '2/h', key: 'user' })
  @UseGuards(auth)
  @Degrade({ shared: true })
  kept(): { pieces: number } {
    return { pieces: 7 };
  }

  @Get('other')
  other(): string {
    return 'ok';
  }
}

@Controller()
class InsideController {
  @Get('inside')
  @SkipRateLimit('door')
  inside(): string {
    return 'ok';
  }
}

const ALL = 10;
const ada = { 'x-user': 'ada' };
const DEFAULT = { rate: `${ALL}/h`, key: 'global' } as const;

let redis: RedisProcess;
beforeAll(async () => (redis = await startRedis()));
afterAll(stopAll);

describe.each(PLATFORMS)('tokens of a request that a later guard denies, on %s', (platform) => {
  let http: HttpApp;
  const start = async (
    options: RateLimitModuleInput,
    controllers = [ShopController] as Type[],
  ): Promise<void> => {
    const module = RateLimitModule.forRoot({ service: 'shop', apply: ['default'], ...options });
    http = await startHttp(platform, { imports: [module], controllers });
  };
  const get = async (path: string, count: number, headers = {}): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push((await http.get(path, headers)).status);
    return all;
  };
  const many = (count: number, status: number): number[] => Array<number>(count).fill(status);
  afterEach(() => http.close());

  /** A process that holds up answers on a busy machine would let the share of the process decide. */
  const onRedis = (prefix: string) =>
    ({
      type: 'redis',
      url: redis.url,
      prefix: `${platform}-${prefix}`,
      decisionTimeout: '60s',
    }) as const;
  const STORES: Record<string, () => RateLimitModuleInput> = {
    memory: () => ({ clock: new ManualClock(), policies: { default: DEFAULT } }),
    Redis: () => ({
      store: onRedis('exact'),
      policies: { default: { ...DEFAULT, sync: 'exact' } },
    }),
    'Redis, leased': () => ({
      store: onRedis('leased'),
      policies: { default: { ...DEFAULT, sync: 'leased' } },
    }),
    'a window on Redis': () => ({
      store: onRedis('window'),
      policies: { default: { ...DEFAULT, algorithm: 'sliding-window' } },
    }),
  };

  it.each(Object.keys(STORES))('go back to the limits that were asked first: %s', async (store) => {
    await start(STORES[store]!());
    expect(await get('/orders', 12, ada)).toEqual([200, 200, ...many(10, 429)]);
    expect(await get('/other', ALL)).toEqual([...many(ALL - 2, 200), 429, 429]);
  });

  it('go back when another answer takes the place of the handler', async () => {
    await start(STORES['memory']!());
    expect(await get('/kept', 12, ada)).toEqual(many(12, 200));
    expect(await get('/other', ALL)).toEqual([...many(ALL - 2, 200), 429, 429]);
  });

  it('go back to the quota of the app', async () => {
    const apps = { shop: { guaranteed: ALL, burst: ALL } };
    await start({ clock: new ManualClock(), quota: { apps }, app: 'shop', apply: 'quota' });
    expect(await get('/orders', 12, ada)).toEqual([200, 200, ...many(10, 429)]);
    expect(await get('/other', ALL)).toEqual([...many(ALL - 2, 200), 429, 429]);
  });

  const shownBy = ({ headers }: Response): Record<string, string> =>
    Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit')));

  it('are not shown as taken', async () => {
    await start({ ...STORES['memory']!(), headers: { legacy: true } });
    await get('/orders', 2, ada);
    const denied = await http.get('/orders', ada);
    expect(denied.status).toBe(429);
    expect(shownBy(denied)).toEqual({
      ratelimit: expect.stringMatching(/^"limit-\w+";r=0;t=1800$/) as string,
      'ratelimit-policy': expect.stringMatching(/^"limit-\w+";q=2;w=3600$/) as string,
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '3600',
    });
    const next = await http.get('/other');
    expect(next.headers.get('ratelimit')).toBe(`"default";r=${ALL - 3};t=1080`);
  });

  it.each([
    ['are not shown if a quota denies', false, undefined],
    ['are shown if an early limit keeps them', true, '"default";r=8;t=720'],
  ])('%s', async (_name, early, shown) => {
    await start({
      clock: new ManualClock(),
      headers: { legacy: true },
      policies: { default: { ...DEFAULT, early } },
      quota: { apps: { shop: { guaranteed: ALL, burst: ALL }, ada: { guaranteed: 1, burst: 1 } } },
      app: (context) =>
        context.switchToHttp().getRequest<{ user?: { id: string } }>().user?.id ?? 'shop',
    });
    expect(await get('/orders', 1, ada)).toEqual([200]);
    const denied = await http.get('/orders', ada);
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('1');
    expect(shownBy(denied)['ratelimit']).toBe(shown);
    expect(Object.keys(shownBy(denied))).toHaveLength(early ? 5 : 0);
  });

  it('stay taken if it is the application that refuses', async () => {
    await start(STORES['memory']!());
    expect(await get('/orders', 12)).toEqual([...many(ALL, 401), 429, 429]);
  });

  it('stay taken from an early limit, which is there for the guards behind it', async () => {
    const policies = { default: DEFAULT, door: { ...DEFAULT, early: true } };
    const limits = { clock: new ManualClock(), policies, apply: ['default', 'door'] };
    await start(limits, [ShopController, InsideController]);
    expect(await get('/orders', ALL, ada)).toEqual([200, 200, ...many(8, 429)]);
    expect(await get('/other', 1)).toEqual([429]);
    expect(await get('/inside', ALL)).toEqual([...many(ALL - 2, 200), 429, 429]);
  });
});
