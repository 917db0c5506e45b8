import { Controller, Get, Injectable } from '@nestjs/common';
import { Degrade, Protect, RateLimit, SkipRateLimit } from 'nestjs-weir';
import { failure, HELLO, HelloController, root } from './started-app.js';

describe('a name that is misspelt', () => {
  it.each([
    ['@RateLimit', RateLimit('helo'), {}, '@RateLimit on Misspelt.get'],
    ['@SkipRateLimit', SkipRateLimit('helo'), {}, '@SkipRateLimit on Misspelt.get'],
    ['apply', RateLimit('hello'), { apply: ['helo'] }, 'apply'],
  ])('of a policy, in %s', async (_, decorator, options, where) => {
    @Controller()
    class Misspelt {
      @Get()
      @decorator
      get(): string {
        return '';
      }
    }
    expect(await failure(root({ policies: HELLO, ...options }), Misspelt)).toBe(
      `${where}: expected one of the policies hello, got "helo"; did you mean 'hello'?`,
    );
  });

  it('of a policy, where there are none', async () => {
    expect(await failure(root({}), HelloController)).toBe(
      "@RateLimit on HelloController.hello: expected a policy, but there are none: the option 'policies' " +
        'defines them, got "hello"',
    );
  });

  it('of a tier that a policy always has', async () => {
    const hello = { rate: 1, tiers: { vip: 5 }, tier: 'vpi' };
    expect(await failure(root({ policies: { hello } }))).toBe(
      `policies.hello.tier: expected one of the tiers vip, got "vpi"; did you mean 'vip'?`,
    );
    const isThere = { ...hello, tier: 'vip' };
    expect(await failure(root({ policies: { hello: isThere } }))).toBeUndefined();
  });

  it('a rate in the place of a name', async () => {
    @Controller()
    class Rated {
      @Get()
      @RateLimit('10/min')
      get(): string {
        return '';
      }
    }
    const hint = "; for a limit of its own write @RateLimit({ rate: '10/min' })";
    expect(await failure(root(), Rated)).toBe(
      `@RateLimit on Rated.get: expected one of the policies hello, got "10/min"${hint}`,
    );
    expect(await failure(root({}), Rated)).toMatch(hint);
  });

  it("the quota among the policies of 'apply'", async () => {
    const quota = { apps: { shop: { guaranteed: 5 } } };
    const options = { policies: HELLO, quota, app: 'shop', apply: ['hello', 'quota'] };
    expect(await failure(root(options))).toBe(
      'apply: expected one of the policies hello, got "quota"; policies charge the quota as well, so leave it out ' +
        "of the list, or write apply: 'quota' for it alone",
    );
  });

  const POLICY_OPTIONS =
    'rate, period, burst, algorithm, mode, subWindows, cost, tiers, scope, sync, failureMode, shadow, ' +
    'maxWaiters, hot, adaptive, values, maxDelay, defaultTier, passThrough, key, anonymous, tier, skipIf, ' +
    'rejection, early';

  it('of an option of a policy: all that are legal there', async () => {
    expect(await failure(root({ policies: { hello: { rate: 1, brust: 5 } } }))).toBe(
      `policies.hello.brust: no such option; did you mean 'burst'? expected one of ${POLICY_OPTIONS}`,
    );
  });

  it('of an option of a policy that only requests know', async () => {
    expect(await failure(root({ policies: { hello: { rate: 1, skipif: 5 } } }))).toBe(
      `policies.hello.skipif: no such option; did you mean 'skipIf'? expected one of ${POLICY_OPTIONS}`,
    );
  });

  it('of an option of a policy in a decorator', async () => {
    @Controller()
    class Inline {
      @Get()
      @RateLimit({ rate: 1, brust: 5 } as never)
      get(): string {
        return '';
      }
    }
    expect(await failure(root({}), Inline)).toBe(
      `@RateLimit on Inline.get.brust: no such option; did you mean 'burst'? expected one of ${POLICY_OPTIONS}, name`,
    );
  });

  it('of an option of the module', async () => {
    const message = await failure(root({ polices: HELLO }));
    expect(message).toMatch(
      /^options\.polices: no such option; did you mean 'policies'\? expected one of policies, /,
    );
    for (const option of ['store', 'apply', 'user', 'quota', 'rejection', 'clock']) {
      expect(message).toMatch(new RegExp(`\\b${option}\\b`));
    }
  });

  it('of a fallback method', async () => {
    @Controller()
    class Roughly {
      @Get()
      @Degrade({ shared: true, level3: 'rogh' })
      get(): string {
        return '';
      }
    }
    expect(await failure(root(), Roughly)).toBe(
      '@Degrade on Roughly.get.level3: expected a method of Roughly, got "rogh"',
    );
  });

  it('of a resource', async () => {
    @Injectable()
    class Stock {
      @Protect('bd')
      load(): Promise<number> {
        return Promise.resolve(1);
      }
    }
    expect(await failure(root({ protection: { db: 'database' } }), Stock)).toBe(
      `@Protect on Stock.load: unknown resource "bd"; did you mean 'db'? there is "db"`,
    );
  });
});

describe("@nestjs/throttler's words", () => {
  const ours = (rate: unknown, period: unknown): string =>
    `{ algorithm: 'sliding-window', rate: ${String(rate)}, period: ${String(period)} }`;
  const page =
    "in the place of @nestjs/throttler's ttl and limit; https://github.com/nestjs-weir/nestjs-weir/blob/main/docs/migrating-from-throttler.md has it word by word";

  it.each([
    ['an array', [{ ttl: 60000, limit: 10 }]],
    ['throttlers', { throttlers: [{ ttl: 60000, limit: 10 }] }],
  ])('%s', async (_, options) => {
    expect(await failure(root(options))).toBe(
      `forRoot: expected { policies: { default: ${ours(10, 60000)} } } ${page}`,
    );
  });

  it('in a policy', async () => {
    expect(await failure(root({ policies: { hello: { ttl: 60000, limit: 10 } } }))).toBe(
      `policies.hello: expected ${ours(10, 60000)} ${page}`,
    );
  });

  it.each([
    ['by name', { default: { limit: 3, ttl: 60000 } }, ours(3, 60000)],
    ['bare', { limit: () => 3, ttl: 1000 }, ours('limit', 1000)],
    ['in an array', [{ limit: 3, ttl: 1000 }], `{ policies: { default: ${ours(3, 1000)} } }`],
  ])('in @RateLimit, %s', (_, what, expected) => {
    expect(() => RateLimit(what as never)).toThrow(`@RateLimit: expected ${expected} ${page}`);
  });

  it('but not the limit of passThrough, which is one of ours', async () => {
    const merchant = {
      ...{ key: 'global', tiers: { S: 10, C: 1 }, defaultTier: 'C' },
      passThrough: { S: 0.5, limit: 5 },
    };
    expect(await failure(root({ policies: { merchant } }))).toBeUndefined();
    expect(() => RateLimit({ ...merchant } as never)).not.toThrow();
  });

  it('in @SkipRateLimit', () => {
    expect(() => SkipRateLimit({ default: false } as never)).toThrow(
      '@SkipRateLimit: expected names of policies, as in @SkipRateLimit(\'search\'), or nothing for all, got {"default":false}',
    );
  });
});
