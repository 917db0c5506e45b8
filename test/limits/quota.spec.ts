import { Controller, Get, Post, type ExecutionContext } from '@nestjs/common';
import { ClusterQuota, RateLimit, RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { startRedis, stopAll, withRedis } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';

@Controller()
class ShopController {
  @Get('quota')
  @RateLimit()
  quota(): string {
    return 'ok';
  }

  @Post('quota')
  @RateLimit()
  write(): string {
    return 'ok';
  }

  @Get('both')
  @RateLimit('many')
  both(): string {
    return 'ok';
  }

  @Get('policy-only')
  @RateLimit('many', { quota: false })
  policyOnly(): string {
    return 'ok';
  }

  @Get('inline-only')
  @RateLimit({ rate: 100, period: '1h', quota: false })
  inlineOnly(): string {
    return 'ok';
  }

  @Get('free')
  free(): string {
    return 'ok';
  }
}

const policies = { many: { rate: 100, period: '1h' } } as const;
const apps = { shop: { guaranteed: 2 }, mail: { guaranteed: 1 } };

async function statuses(http: HttpApp, ...paths: string[]): Promise<number[]> {
  const all: number[] = [];
  for (const path of paths) all.push((await http.get(path)).status);
  return all;
}

describe.each(PLATFORMS)('the quota of an app, in memory on %s', (platform) => {
  let http: HttpApp;
  const start = async (options: RateLimitModuleInput): Promise<HttpApp> => {
    const imports = [RateLimitModule.forRoot({ clock: new ManualClock(), policies, ...options })];
    return (http = await startHttp(platform, { imports, controllers: [ShopController] }));
  };
  afterEach(() => http.close());

  it('is what @RateLimit() charges, with 429 and without figures of the service', async () => {
    await start({ quota: { apps }, app: 'shop' });
    expect(await statuses(http, '/quota', '/quota')).toEqual([200, 200]);
    const denied = await http.get('/quota');
    expect(denied.status).toBe(429);
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(denied.headers.get('ratelimit')).toBeNull();
    expect(denied.headers.get('ratelimit-policy')).toBeNull();
    const problem: unknown = await denied.json();
    expect(problem).toMatchObject({ code: 'RATE_LIMITED', status: 429 });
    // Nor what the app is called.
    expect(JSON.stringify([...denied.headers, problem])).not.toMatch(/shop|violated/);
  });

  it('comes on top of policies, and only their figures are told', async () => {
    await start({ quota: { apps }, app: 'shop', headers: { legacy: true } });
    const first = await http.get('/both');
    expect(first.headers.get('ratelimit')).toBe('"many";r=99;t=36');
    expect(first.headers.get('x-ratelimit-limit')).toBe('100');
    expect(await statuses(http, '/both', '/both')).toEqual([200, 429]);
  });

  it('takes nothing from a policy when it denies', async () => {
    await start({ quota: { apps: { shop: { guaranteed: 1 } } }, app: 'shop' });
    expect(await statuses(http, '/both', '/both', '/both')).toEqual([200, 429, 429]);
    expect((await http.get('/policy-only')).headers.get('ratelimit')).toMatch('"many";r=98');
  });

  it('is left out by { quota: false }, and by routes without a decorator', async () => {
    await start({ quota: { apps: { shop: { guaranteed: 1 } } }, app: 'shop' });
    const paths = ['/quota', '/quota', '/policy-only', '/inline-only', '/free'];
    expect(await statuses(http, ...paths)).toEqual([200, 429, 200, 200, 200]);
  });

  it("is every route's with apply: 'quota'", async () => {
    await start({ quota: { apps: { shop: { guaranteed: 1 } } }, app: 'shop', apply: 'quota' });
    expect(await statuses(http, '/free', '/free')).toEqual([200, 429]);
  });

  it('is that of the app which a function names', async () => {
    const app = (context: ExecutionContext): string =>
      context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-app'] ??
      'shop';
    await start({ quota: { apps }, app });
    expect((await http.get('/quota', { 'x-app': 'mail' })).status).toBe(200);
    expect((await http.get('/quota', { 'x-app': 'mail' })).status).toBe(429);
    expect(await statuses(http, '/quota', '/quota', '/quota')).toEqual([200, 200, 429]);
  });

  it('answers 503 for the shared capacity, and says nothing about its size', async () => {
    const quota = {
      cluster: { capacity: 100 },
      apps: { shop: { guaranteed: 1, burst: 100_000 } },
    };
    await start({ quota, app: 'shop' });
    let denied = await http.get('/quota');
    for (let i = 0; i < 300 && denied.status === 200; i++) denied = await http.get('/quota');
    expect(denied.status).toBe(503);
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0);
    const body = await denied.text();
    expect(JSON.parse(body)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      code: 'OVERLOADED',
      status: 503,
    });
    expect(body).not.toMatch(/shop|100/);
    expect([...denied.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
  });

  it('counts consumption by verb', async () => {
    const clock = new ManualClock();
    await start({ clock, quota: { apps: { shop: { guaranteed: 10 } } }, app: 'shop' });
    await http.get('/quota');
    await fetch(`${http.url}/quota`, { method: 'POST' });
    await fetch(`${http.url}/quota`, { method: 'POST' });
    clock.advance(1000);
    const { shop } = (await http.app.get(ClusterQuota).status()).apps;
    expect(shop?.consumption.byMethod).toEqual({
      GET: { count: 1, cost: 1 },
      POST: { count: 2, cost: 2 },
    });
  });
});

describe('the quota of an app on Redis', () => {
  afterAll(stopAll);

  it.each<[Platform]>([['express'], ['fastify']])(
    'is one for two applications on %s',
    async (platform) => {
      const redis = await startRedis();
      const options: RateLimitModuleInput = {
        policies,
        // On a busy machine no decision is made without Redis.
        store: { type: 'redis', url: redis.url, decisionTimeout: '5s' },
        quota: { apps: { shop: { guaranteed: 1 } } },
        app: 'shop',
      };
      const nodes = await Promise.all(
        [1, 2].map(() =>
          startHttp(platform, {
            imports: [RateLimitModule.forRoot(options)],
            controllers: [ShopController],
          }),
        ),
      );
      const startedMs = performance.now();
      const answers: number[] = [];
      for (let i = 0; i < 20; i++) answers.push(...(await statuses(nodes[i % 2]!, '/quota')));
      const seconds = (performance.now() - startedMs) / 1000;
      const allowed = answers.filter((status) => status === 200).length;
      expect(new Set(answers)).toEqual(new Set([200, 429]));
      expect(allowed).toBeGreaterThanOrEqual(1);
      expect(allowed).toBeLessThanOrEqual(seconds + 1);
      // Both serve the one app that they are for, and no other.
      const count = (set: string) => withRedis(redis.port, (client) => client.zcard(set));
      expect(await count('weir:{default}:nodes:shop')).toBe(2);
      expect(await count('weir:{default}:nodes')).toBe(0);
      for (const node of nodes) await node.close();
      await redis.stop();
    },
  );
});
