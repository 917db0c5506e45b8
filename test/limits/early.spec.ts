import {
  Controller,
  Get,
  HttpException,
  Injectable,
  Module,
  Param,
  Post,
  UnauthorizedException,
  UseGuards,
  Version,
  VersioningType,
  type CanActivate,
  type INestApplication,
  type Type,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import {
  RateLimit,
  RateLimitDecision,
  RateLimiter,
  RateLimitModule,
  SkipRateLimit,
  type Decision,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { startRedis, stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';

/** Lets no request in, and counts them. A 429 came from before it. */
@Injectable()
class Bouncer implements CanActivate {
  static asked = 0;

  canActivate(): boolean {
    Bouncer.asked++;
    throw new UnauthorizedException();
  }
}

@Controller('login')
class LoginController {
  // The guard of @RateLimit would run second: guards run from the last decorator to the first.
  @Post()
  @RateLimit('login')
  @UseGuards(Bouncer)
  login(): string {
    return 'in';
  }

  @Get('page')
  page(): string {
    return 'page';
  }
}

@Controller(['items', 'things'])
class ItemsController {
  @Get(['one', 'first/:id'])
  @RateLimit('early')
  @RateLimit('late')
  both(@RateLimitDecision() decision: Decision): object {
    return { policies: decision.decisions?.map(({ policy }) => policy) };
  }

  @Get('inline/:id')
  @RateLimit({ rate: 1, period: '1m', key: { header: 'x-key' }, early: true })
  inline(@Param('id') id: string): string {
    return id;
  }

  @Get('own-words')
  @RateLimit({
    rate: 1,
    period: '1m',
    early: true,
    rejection: () => new HttpException('enough', 420),
  })
  ownRejection(): string {
    return 'ok';
  }

  @Get('skipped')
  @SkipRateLimit()
  skipped(): string {
    return 'ok';
  }

  @Get('versioned')
  @Version('2')
  @RateLimit('early')
  @UseGuards(Bouncer)
  versioned(): string {
    return 'two';
  }
}

const policies = {
  login: { rate: 2, period: '1m', early: true },
  early: { rate: 2, period: '1m', key: 'global', early: true },
  late: { rate: 5, period: '1m' },
} as const;

describe.each(PLATFORMS)('an early policy on %s', (platform) => {
  let http: HttpApp;
  const start = async (
    options: RateLimitModuleInput = {},
    prepare?: (app: INestApplication) => void,
    imports: Type[] = [],
  ): Promise<void> => {
    const module = RateLimitModule.forRoot({ clock: new ManualClock(), policies, ...options });
    const controllers = [LoginController, ItemsController];
    http = await startHttp(platform, { imports: [module, ...imports], controllers }, prepare);
  };
  const statuses = async (...paths: string[]): Promise<number[]> => {
    const all: number[] = [];
    for (const path of paths) all.push((await http.get(path)).status);
    return all;
  };
  const remaining = (): number =>
    (http.app.get(RateLimiter).peek({ policy: 'early', key: 'global' }) as Decision).remaining;

  afterEach(() => http.close());

  it('is decided before all guards', async () => {
    await start();
    Bouncer.asked = 0;
    const login = (): Promise<Response> => fetch(`${http.url}/login`, { method: 'POST' });
    const answers = [await login(), await login(), await login()];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 429]);
    expect(Bouncer.asked).toBe(2);
    expect((await http.get('/login/page')).status).toBe(200);
  });

  it('is charged once, and told together with what the guard asks for', async () => {
    await start();
    const first = await http.get('/items/one');
    expect(await first.json()).toEqual({ policies: ['early', 'late'] });
    expect(first.headers.get('ratelimit')).toBe('"early";r=1;t=30, "late";r=4;t=12');
    expect(first.headers.get('ratelimit-policy')).toBe('"early";q=2;w=60, "late";q=5;w=60');
    expect(remaining()).toBe(1);
  });

  it('denies in the words of the guard, and then takes nothing of the others', async () => {
    await start();
    await statuses('/items/one', '/items/one');
    const denied = await http.get('/items/one');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('30');
    expect(denied.headers.get('ratelimit')).toBe('"early";r=0;t=30');
    expect(denied.headers.get('content-type')).toMatch('application/problem+json');
    expect(await denied.json()).toMatchObject({
      code: 'RATE_LIMITED',
      'violated-policies': ['early'],
    });
    const late = http.app.get(RateLimiter).peek({ policy: 'late', key: '127.0.0.1' }) as Decision;
    expect(late.remaining).toBe(3);
  });

  it('holds on every path of a route, and only on its verb', async () => {
    await start();
    expect(await statuses('/things/first/7', '/items/first/8', '/things/one')).toEqual([
      200, 200, 429,
    ]);
    expect((await fetch(`${http.url}/login/page`, { method: 'POST' })).status).toBe(404);
  });

  it('may stand in a decorator, and have a header for a key', async () => {
    await start();
    const get = async (key: string) => (await http.get('/items/inline/1', { 'x-key': key })).status;
    expect([await get('a'), await get('b'), await get('a')]).toEqual([200, 200, 429]);
  });

  it('may have its own words, which the filters of the application hear', async () => {
    await start();
    await http.get('/items/own-words');
    const denied = await http.get('/items/own-words');
    expect([denied.status, await denied.json()]).toEqual([
      420,
      { statusCode: 420, message: 'enough' },
    ]);
  });

  it('of apply holds on every route but those that are skipped', async () => {
    const login = { ...policies.login, rate: 9 };
    await start({ apply: ['early'], policies: { ...policies, login } });
    const post = async (): Promise<number> =>
      (await fetch(`${http.url}/login`, { method: 'POST' })).status;
    expect([await post(), await post(), await post()]).toEqual([401, 401, 429]);
    expect(await statuses('/items/skipped', '/login/page')).toEqual([200, 429]);
    await http.close();
    await start({ apply: ['early'] });
    expect(await statuses('/login/page', '/login/page', '/login/page')).toEqual([200, 200, 429]);
    expect(await statuses('/items/skipped', '/items/one')).toEqual([200, 429]);
  });

  it('knows global prefixes', async () => {
    const post = async (path: string): Promise<number> =>
      (await fetch(http.url + path, { method: 'POST' })).status;
    await start({}, (app) => void app.setGlobalPrefix('api'));
    expect([await post('/api/login'), await post('/api/login')]).toEqual([401, 401]);
    expect([await post('/api/login'), await post('/login')]).toEqual([429, 404]);
    await http.close();
    await start({}, (app) => void app.setGlobalPrefix('api', { exclude: ['login'] }));
    expect([await post('/login'), await post('/login')]).toEqual([401, 401]);
    expect(await post('/login')).toBe(429);
  });

  it('knows versions of a path', async () => {
    await start({}, (app) => void app.enableVersioning({ type: VersioningType.URI }));
    expect(await statuses('/v2/items/versioned', '/v2/items/versioned')).toEqual([401, 401]);
    expect(await statuses('/v2/items/versioned', '/v1/items/versioned')).toEqual([429, 404]);
  });

  it('knows versions of a header', async () => {
    await start(
      {},
      (app) => void app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
    );
    const get = async (): Promise<number> =>
      (await http.get('/items/versioned', { 'x-version': '2' })).status;
    expect([await get(), await get(), await get()]).toEqual([401, 401, 429]);
  });

  it('knows paths of modules', async () => {
    @Controller('inner')
    class Inner {
      @Get()
      @RateLimit('early')
      @UseGuards(Bouncer)
      inner(): string {
        return 'ok';
      }
    }
    @Module({ controllers: [Inner] })
    class Outer {}
    const routes = RouterModule.register([{ path: 'outer', module: Outer }]);
    await start({}, undefined, [Outer, routes as never]);
    expect(await statuses('/outer/inner', '/outer/inner', '/outer/inner')).toEqual([401, 401, 429]);
  });
});

describe('an early policy on Redis', () => {
  afterAll(stopAll);

  it('is asked for once', async () => {
    const redis = await startRedis();
    const store = { type: 'redis', url: redis.url, decisionTimeout: '5s' } as const;
    const http = await startHttp('fastify', {
      imports: [RateLimitModule.forRoot({ policies, store })],
      controllers: [LoginController, ItemsController],
    });
    await http.app.get(RateLimiter).ready();
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await http.get('/items/one'));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers[1]!.headers.get('ratelimit')).toMatch(/^"early";r=0;t=\d+, "late";r=3;t=\d+$/);
    await http.close();
    await redis.stop();
  });
});
