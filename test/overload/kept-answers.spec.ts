import {
  Controller,
  ForbiddenException,
  Get,
  Injectable,
  Param,
  Post,
  UseGuards,
  VERSION_NEUTRAL,
  VersioningType,
  type CanActivate,
  type ExecutionContext,
  type VersioningOptions,
} from '@nestjs/common';
import {
  Degradation,
  Degrade,
  Overload,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type OverloadInput,
} from 'nestjs-weir';
import { CachedRequests } from '../../lib/degradation/route-answers.js';
import { addressesOf, patternOf, type PathConfig } from '../../lib/degradation/warm-addresses.js';
import { HalfSlice, type RefusedRequest } from '../../lib/overload/half-slice.js';
import { InProcessRedis } from '../../lib/testing/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { until } from '../support/until.js';
import { ManualLoop } from './manual-loop.js';

let calls: string[];
let ends: (() => void)[];

@Injectable()
class Members implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    if (headers['x-guest'] !== undefined) throw new ForbiddenException();
    return true;
  }
}

@Controller()
class Pages {
  @Get('hold')
  async hold(): Promise<string> {
    calls.push('hold');
    await new Promise<void>((resolve) => ends.push(resolve));
    return 'held';
  }

  @Get('quick')
  quick(): string {
    return 'quick';
  }

  @Get('products/new')
  newest(): string {
    calls.push('new');
    return 'new';
  }

  @Get('products/:id')
  @Degrade({
    level4: { id: 'any' },
    warm: () => [
      { params: { id: 'a b' }, query: { color: 'red' }, load: () => ({ id: 'warm' }) },
      { params: { id: 'c' }, load: () => Promise.reject(new Error('away')) },
    ],
  })
  product(@Param('id') id: string): object {
    calls.push(id);
    return { id };
  }

  @Get('offers/:id')
  @UseGuards(Members)
  @Degrade({ level4: { id: 'any' } })
  @RateLimit('early')
  @RateLimit('offers')
  offer(@Param('id') id: string): object {
    calls.push(id);
    return { id };
  }

  @Post('products/:id')
  buy(): string {
    calls.push('bought');
    return 'bought';
  }
}

const POLICIES = {
  offers: { rate: 100, key: 'global' },
  early: { rate: 100, key: 'global', early: true },
} as const;

describe.each(PLATFORMS)('a request that the line refuses, on %s', (platform) => {
  let server: HttpApp;
  let clock: ManualClock;
  let overload: Overload;
  let limiter: RateLimiter;

  /** One runs, one waits; every other is refused. */
  async function fill(): Promise<void> {
    void server.get('/hold');
    await until(() => ends.length === 1);
    void server.get('/quick');
    await until(() => overload.stats().waiting === 1);
    calls = [];
  }

  beforeEach(async () => {
    calls = [];
    ends = [];
    clock = new ManualClock();
    server = await startHttp(platform, {
      imports: [
        RateLimitModule.forRoot({
          policies: POLICIES,
          overload: { enabled: true, maxInFlight: 1, maxWaiting: 1 },
          clock,
        }),
      ],
      controllers: [Pages],
      providers: [Members],
    });
    overload = server.app.get(Overload);
    limiter = server.app.get(RateLimiter);
  });
  afterEach(async () => {
    for (const end of ends) end();
    await server.close();
  });

  const status = async (path: string, headers = {}): Promise<number> => {
    const answer = await server.get(path, headers);
    await answer.text();
    return answer.status;
  };

  it('gets the answer that @Degrade has kept, without its handler', async () => {
    expect(await status('/products/1?color=red')).toBe(200);
    await fill();
    const answer = await server.get('/products/1?color=red');
    expect([answer.status, await answer.json()]).toEqual([200, { id: '1' }]);
    expect(answer.headers.get('x-degraded')).toContain('overload');
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(calls).toEqual([]);
    expect(overload.stats().byTier['all']!.full).toBe(1);
    expect(server.app.get(Degradation).stats().fallbacks.answers[1].overload).toBe(1);
  });

  it('gets an answer that was only warmed, and that nobody has asked for', async () => {
    const degradation = server.app.get(Degradation);
    await degradation.warm();
    await degradation.warmUp('Pages.product', [{ params: { id: '7' } }], () => ({ id: 'seven' }));
    await fill();
    const first = await server.get('/products/a%20b?color=red');
    expect([first.status, await first.json()]).toEqual([200, { id: 'warm' }]);
    const second = await server.get('/products/7');
    expect([second.status, await second.json()]).toEqual([200, { id: 'seven' }]);
    expect(await status('/products/c')).toBe(503);
    expect(calls).toEqual([]);
  });

  it('gets nothing else: neither another level, nor what nobody has asked before', async () => {
    await status('/products/1');
    await fill();
    for (const path of ['/products/2', '/products/1?color=red']) {
      const answer = await server.get(path);
      expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'OVERLOADED' }]);
    }
    expect((await fetch(`${server.url}/products/1`, { method: 'POST' })).status).toBe(503);
    expect(calls).toEqual([]);
  });

  it('is refused as the line does it when the caches have forgotten it', async () => {
    await status('/products/1');
    clock.advance(301_000);
    await fill();
    const answer = await server.get('/products/1');
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'OVERLOADED' }]);
    expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(answer.headers.get('retry-after')).toMatch(/^[12]$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(calls).toEqual([]);
  });

  it('takes no token, and guards of the application have their say', async () => {
    expect(await status('/offers/1')).toBe(200);
    const taken = (): number[] =>
      ['offers', 'early'].map((name) => limiter.stats().policies[name]!.allowed);
    await fill();
    expect(await status('/offers/1')).toBe(200);
    expect(await status('/offers/1', { 'x-guest': 'yes' })).toBe(403);
    expect([taken(), calls]).toEqual([[1, 1], []]);
  });
});

describe.each(PLATFORMS)('a request that the line refuses, of a fleet on %s', (platform) => {
  it('gets the answer that another process has kept, and none of other routes', async () => {
    [calls, ends] = [[], []];
    const redis = new InProcessRedis();
    const start = (nodeId: string, overload: OverloadInput): Promise<HttpApp> =>
      startHttp(
        platform,
        {
          imports: [
            RateLimitModule.forRoot({
              ...{ nodeId, overload, store: redis.store(), service: 'shop' },
              policies: POLICIES,
            }),
          ],
          controllers: [Pages],
          providers: [Members],
        },
        (app) => void app.setGlobalPrefix('api'),
      );
    const other = await start('other', {});
    const narrow = { enabled: true, maxInFlight: 1, maxWaiting: 1, target: '1h', interval: '2h' };
    const own = await start('own', narrow as OverloadInput);
    try {
      const overload = own.app.get(Overload);
      expect((await other.get('/api/products/9?color=red')).status).toBe(200);
      await until(async () => (await other.get('/api/products/9?color=red')).ok);
      void own.get('/api/hold');
      await until(() => ends.length === 1);
      void own.get('/api/quick');
      await until(() => overload.stats().waiting === 1);
      calls = [];
      const answer = await own.get('/api/products/9?color=red');
      expect([answer.status, await answer.json()]).toEqual([200, { id: '9' }]);
      expect(answer.headers.get('x-degraded')).toContain('overload');
      for (const path of ['/api/products/8', '/api/products/new', '/api/quick']) {
        expect([path, (await own.get(path)).status]).toEqual([path, 503]);
      }
      expect(calls).toEqual([]);
    } finally {
      for (const end of ends) end();
      await Promise.all([own.close(), other.close()]);
    }
  });
});

describe('the addresses of a request that nobody has made', () => {
  const configOf = (prefix: string, type?: VersioningType): PathConfig => ({
    getGlobalPrefix: () => prefix,
    getVersioning: () => (type === undefined ? undefined : ({ type } as VersioningOptions)),
  });

  it.each<[string, Parameters<typeof addressesOf>, string[]]>([
    ['a path alone', [[{ path: '/shop' }], {}, undefined], ['/shop']],
    [
      'parameters and a query',
      [
        [{ path: '/shop/:id' }],
        { params: { id: 'a/b' }, query: { q: ['x y', 2], on: true } },
        undefined,
      ],
      ['/shop/a%2Fb?q=x%20y&q=2&on=true'],
    ],
    ['with and without the prefix', [[{ path: '/a' }], {}, configOf('/api/')], ['/a', '/api/a']],
    [
      'by version',
      [[{ path: '/a', version: ['1', VERSION_NEUTRAL] }], {}, configOf('api', VersioningType.URI)],
      ['/v1/a', '/api/v1/a', '/a', '/api/a'],
    ],
    [
      'by a version that only a header shows',
      [[{ path: '/a', version: '1' }], {}, configOf('', VersioningType.HEADER)],
      ['/a'],
    ],
    [
      'the one of several paths that is meant, which is whole',
      [[{ path: '/a' }, { path: '/b' }], { path: '/api/b version 2' }, configOf('api')],
      ['/api/b'],
    ],
    [
      'by the version that all have',
      [
        [{ path: '/a' }],
        {},
        {
          getGlobalPrefix: () => '',
          getVersioning: () => ({ type: VersioningType.URI, defaultVersion: '2' }),
        },
      ],
      ['/v2/a'],
    ],
    ['none of a parameter that is missing', [[{ path: '/:id' }], {}, undefined], []],
    ['none of a wildcard', [[{ path: '/files/*path' }], { params: { path: 'x' } }, undefined], []],
    ['none of a query of objects', [[{ path: '/a' }], { query: { q: { x: 1 } } }, undefined], []],
    ['none with a body', [[{ path: '/a' }], { body: 1 }, undefined], []],
  ])('are %s', (_, asked, addresses) => {
    expect(addressesOf(...asked)).toEqual(addresses);
  });
});

describe('the pattern of paths', () => {
  const config: PathConfig = {
    getGlobalPrefix: () => 'api',
    getVersioning: () => ({ type: VersioningType.URI, defaultVersion: '1' }),
  };
  const pattern = patternOf(
    [{ path: '/shop.of/:id' }, { path: '/files/*path', version: '2' }, { path: '/' }],
    config,
  );

  it.each([
    ['/v1/shop.of/7', true],
    ['/api/v1/shop.of/a%20b/?q=/x', true],
    ['/api/v2/files/a/b/c', true],
    ['/v1', true],
    ['/shop.of/7', false],
    ['/v1/shopxof/7', false],
    ['/v1/shop.of/7/reviews', false],
    ['/v1/shop.of/?x=1', false],
    ['/other/v1/shop.of/7', false],
  ])('knows of %s: %s', (address, isLike) => {
    expect(pattern.test(address)).toBe(isLike);
    expect(patternOf([], config).test(address)).toBe(false);
  });
});

describe('the requests whose answers are kept', () => {
  it('are the last ten thousand, and none where nobody will ask', () => {
    const kept = new CachedRequests();
    kept.add(() => ['/early']);
    kept.remember();
    for (let i = 0; i < 10_001; i++) kept.add(() => [`/products/${i}`]);
    kept.add(() => [`/${'long'.repeat(10_000)}`]);
    expect(
      ['/early', '/products/0', `/${'long'.repeat(10_000)}`].some((one) => kept.has(one)),
    ).toBe(false);
    expect(['/products/1', '/products/10000'].every((one) => kept.has(one))).toBe(true);
  });
});

describe('half a slice', () => {
  it('has room for one in a turn of which nobody knows whether it has an answer', () => {
    const tasks: (() => void)[] = [];
    const half = new HalfSlice(
      () => 5000,
      new ManualLoop().clock,
      (task) => tasks.push(task),
    );
    let answered = 0;
    const one: RefusedRequest = {
      answer: () => answered++,
      turnAway: () => {},
      isGone: () => false,
    };
    for (let turn = 1; turn <= 2; turn++) {
      expect([half.canTry, half.enter(one, true), half.canTry]).toEqual([true, true, false]);
      expect(half.enter(one)).toBe(true);
      for (let i = 0; i < 2; i++) for (const task of tasks.splice(0)) task();
      expect(answered).toBe(2 * turn);
    }
  });

  it('is all that such answers have in a turn; the others are turned away', () => {
    const loop = new ManualLoop();
    const tasks: (() => void)[] = [];
    const half = new HalfSlice(
      () => 5000,
      loop.clock,
      (task) => tasks.push(task),
    );
    const turn = (): void => {
      for (const task of tasks.splice(0)) task();
    };
    const endings: string[] = [];
    const refused = (isGone = false): RefusedRequest => ({
      answer: () => (endings.push('answered'), loop.spend(1)),
      turnAway: () => endings.push('turned away'),
      isGone: () => isGone,
    });
    expect([...Array(7).keys()].map(() => half.enter(refused()))).not.toContain(false);
    expect(half.enter(refused(true))).toBe(true);
    turn();
    expect(endings).toEqual([]);
    turn();
    expect(endings).toEqual([
      ...Array<string>(3).fill('answered'),
      ...Array<string>(4).fill('turned away'),
    ]);
    // 1 ms each by now: no more than a few are let in.
    expect([...Array(7).keys()].map(() => half.enter(refused()))).toEqual([
      ...[true, true, true, true, false, false, false],
    ]);
    turn();
    turn();
    expect([endings.slice(7), tasks]).toEqual([
      ['answered', 'answered', 'answered', 'turned away'],
      [],
    ]);
  });
});
