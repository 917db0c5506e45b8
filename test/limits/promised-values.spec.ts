import { Controller, Get } from '@nestjs/common';
import { RateLimit, RateLimitCost, RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { settle } from '../support/manual-clock.js';
import { PLATFORMS, startHttp } from '../support/nest/http-apps.js';
import { header, HOUR, WatchedServer } from './watched-server.js';

/** A function that is not declared async, and still gives a promise. */
const promised =
  <T>(value: () => T) =>
  () =>
    Promise.resolve().then(value) as unknown as never;
const rejected = promised(() => {
  throw new Error('bad token');
});

@Controller()
class Routes {
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
}

const options: RateLimitModuleInput = {
  policies: {
    many: { rate: 1000, ...HOUR },
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
  },
  user: (context) => {
    const token = header('x-token')(context);
    if (token === undefined) return undefined;
    return token === 'bad' ? Promise.reject(new Error('bad token')) : Promise.resolve(token);
  },
};

describe.each(PLATFORMS)('a promise on %s', (platform) => {
  let server: WatchedServer;

  beforeAll(async () => {
    server = await WatchedServer.start(platform, Routes, options);
  });

  beforeEach(() => server.renew());

  afterAll(async () => {
    expect(await server.close()).toEqual([]);
  });

  it('a user is waited for; one that is refused is anonymous, and counted', async () => {
    const [ada, bob, bad] = ['ada', 'bob', 'bad'].map((name) => ({ 'x-token': name }));
    expect(await server.statuses('/by-user', ada!, ada!, ada!, bob!)).toEqual([200, 200, 429, 200]);
    expect(await server.statuses('/by-user', bad!, bad!, bad!)).toEqual([200, 200, 429]);
    expect(await server.remaining('per-user', 'anonymous:127.0.0.1')).toBe(0);
    expect(server.faults()).toMatchObject({ 'user: failed': 3 });
    expect(server.log.warnings).toEqual([
      expect.stringMatching(/'user' failed \("bad token"\).*anonymous/),
    ]);
  });

  it('a tier is waited for; one that cannot be had is the default, and counted', async () => {
    const [vip, fails] = ['vip', 'fails'].map((name) => ({ 'x-tier': name }));
    expect(await server.statuses('/by-tier', vip!, vip!, vip!, vip!)).toEqual([200, 200, 200, 429]);
    expect(await server.statuses('/by-tier', fails!, fails!)).toEqual([200, 429]);
    expect(server.faults()).toMatchObject({ 'tiered: tier failed': 2 });
  });

  it.each(['/key', '/skip', '/cost-promised'])(
    'a promise that rejects, where a value is expected: %s',
    async (path) => {
      const answers = await server.statuses(path, {}, {}, {}, {});
      expect(answers).toEqual([200, 200, 429, 429]);
      await settle();
      expect(server.log.warnings.length).toBeLessThanOrEqual(1);
    },
  );

  it('a choice that is a promise, or names what is not there, is refused', async () => {
    const answers = await server.statuses('/choice-promised', {}, {});
    const names = ['nobody', '__proto__', 'toString', 'x'.repeat(5000)];
    answers.push(
      ...(await server.statuses('/choice', ...names.map((name) => ({ 'x-policy': name })))),
    );
    expect(answers).toEqual(Array(6).fill(400));
    expect(await server.statuses('/choice', { 'x-policy': 'many' })).toEqual([200]);
    expect(server.log.warnings).toHaveLength(2);
    expect(Math.max(...server.log.warnings.map(({ length }) => length))).toBeLessThan(250);
  });
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
});
