import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Controller,
  Get,
  Injectable,
  Module,
  SetMetadata,
  UseGuards,
  type Type,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ResolveField, Resolver } from '@nestjs/graphql';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  Degrade,
  Protect,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { checkVersion, LEAST } from '../../lib/stores/optional-package.js';
import { checkNest, checkNode } from '../../lib/versions.js';
import { root as repository } from '../setup/ensure-built.js';
import { Warnings } from '../support/nest/warnings.js';

// What a new user is likely to get wrong, and the words that lead out of it.

const HELLO = { hello: { rate: '1/h' } } as const;

/** The message with which an application of these parts fails to start; undefined if it does. */
async function failure(...parts: unknown[]): Promise<string | undefined> {
  const isModule = (part: unknown): boolean =>
    typeof part === 'object' || Reflect.hasMetadata('imports', part as object);
  const isController = (part: unknown): boolean =>
    !isModule(part) && Reflect.hasMetadata('path', part as object);
  try {
    const app = (
      await Test.createTestingModule({
        imports: parts.filter(isModule) as Type[],
        controllers: parts.filter(isController) as Type[],
        providers: parts.filter((part) => !isModule(part) && !isController(part)) as Type[],
      }).compile()
    ).createNestApplication({ logger: false });
    await app.init();
    await app.close();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const root = (options: RateLimitModuleInput | object = { policies: HELLO }): object =>
  RateLimitModule.forRoot(options);

@Controller()
class HelloController {
  @Get()
  @RateLimit('hello')
  hello(): string {
    return 'hello';
  }
}

const MISSING =
  '@RateLimit needs RateLimitModule, which this application does not import: ' +
  'add RateLimitModule.forRoot({ … }) to the imports of its root module, or RateLimitTestingModule of ' +
  "'nestjs-weir/testing' to those of a test";

describe('an option that there is not', () => {
  it('of the module is told with its plural', async () => {
    const module = RateLimitModule.forRoot({ policy: {} } as never);
    expect(await failure(HelloController, module)).toMatch(/did you mean 'policies'\?/);
  });
});

describe('a module that is missing, or there too often', () => {
  it('none at all', async () => {
    expect(await failure(HelloController)).toBe(MISSING);
  });

  it('none at all, with @Degrade alone', async () => {
    @Controller()
    class Degraded {
      @Get()
      @Degrade({ shared: true, level4: 'later' })
      get(): string {
        return 'now';
      }
    }
    expect(await failure(Degraded)).toBe(MISSING.replace('@RateLimit', '@Degrade'));
  });

  it('none at all, with @Protect alone', async () => {
    @Injectable()
    class Stock {
      @Protect('db', { deadline: 50 })
      load(): Promise<number> {
        return Promise.resolve(1);
      }
    }
    expect(await failure(Stock)).toBe(MISSING.replace('@RateLimit', '@Protect'));
  });

  it('the class without forRoot', async () => {
    expect(await failure(RateLimitModule)).toBe(
      'RateLimitModule was imported as a class, which says nothing of its limits: ' +
        'import RateLimitModule.forRoot({ … }) or RateLimitModule.forRootAsync({ … })',
    );
  });

  it('forFeature without forRoot', async () => {
    expect(await failure(RateLimitModule.forFeature(HELLO))).toBe(
      MISSING.replace('@RateLimit', 'RateLimitModule.forFeature'),
    );
  });

  it.each([
    ['other policies', { policies: { other: { rate: 1 } } }],
    ['the same', { policies: HELLO }],
  ])('two forRoot with %s', async (_, second) => {
    @Module({ imports: [RateLimitModule.forRoot(second)] })
    class Feature {}
    expect(await failure(root(), Feature, HelloController)).toBe(
      'RateLimitModule.forRoot was called 2 times in this application, and each would have limits of its own: ' +
        'call it once, in the root module, and RateLimitModule.forFeature({ … }) for the policies of others',
    );
  });

  it('options of the module in forFeature', () => {
    expect(() => RateLimitModule.forFeature({ policies: HELLO } as never)).toThrow(
      'RateLimitModule.forFeature: expected the policies themselves, by name: forFeature({ hello: … })',
    );
    expect(() => RateLimitModule.forFeature({ policies: { rate: '1/h' } })).not.toThrow();
  });

  it('Nest 10', () => {
    expect(() => checkNest({})).toThrow(
      'nestjs-weir needs Nest 11 or later, and this application runs on an older one: ' +
        'npm install @nestjs/common@11 @nestjs/core@11, and the other packages of Nest likewise',
    );
  });
});

describe('an optional package', () => {
  it.each([
    ['ioredis', '4.30.1', '5.4'],
    ['ioredis', '5.3.2', '5.4'],
    ['prom-client', '14.2.0', '15.1'],
    ['@opentelemetry/api', '1.8.0', '1.9'],
    ['@grpc/grpc-js', '0.8.1', '1.10'],
  ] as const)('%s %s', (name, version, least) => {
    expect(() => checkVersion(name, version, 'this')).toThrow(
      `this needs ${name} ${least} or later, and ${version} is installed: npm install ${name}@latest`,
    );
  });

  it.each([
    ['ioredis', '5.4.0'],
    ['ioredis', '6.0.0'],
    ['prom-client', '15.1.3'],
    ['@grpc/grpc-js', '1.10.0-rc.1'],
    ['@grpc/grpc-js', undefined],
  ] as const)('%s %s is new enough', (name, version) => {
    expect(() => checkVersion(name, version, 'this')).not.toThrow();
  });

  it('is wanted as package.json says', () => {
    const { peerDependencies } = JSON.parse(
      readFileSync(join(repository, 'package.json'), 'utf8'),
    ) as {
      peerDependencies: Record<string, string>;
    };
    for (const [name, least] of Object.entries(LEAST)) {
      expect(peerDependencies[name]).toMatch(new RegExp(`^\\^${least}\\.0`));
    }
  });
});

describe('Node', () => {
  it.each(['v18.20.4', 'v20.18.3', 'v21.7.3', 'v22.11.0', 'v23.11.0'])('%s', (version) => {
    expect(() => checkNode(version)).toThrow(
      'nestjs-weir needs Node 20.19, 22.12, or 24 and later, and this process runs on ' +
        `${version}: nvm install 24, or a package of https://nodejs.org`,
    );
  });

  it.each(['v20.19.0', 'v22.12.0', 'v24.0.0', 'v26.1.0'])('%s is new enough', (version) => {
    expect(() => checkNode(version)).not.toThrow();
  });
});

describe('forRootAsync', () => {
  it('of nothing', () => {
    expect(() => RateLimitModule.forRootAsync({} as never)).toThrow(
      'forRootAsync: expected useFactory, useClass or useExisting, got {}',
    );
  });

  it.each([
    ['a factory', { useFactory: () => undefined as never }, 'useFactory'],
    ['an async factory', { useFactory: () => Promise.resolve(null as never) }, 'useFactory'],
    [
      'a class',
      {
        useClass: class Settings {
          createRateLimitOptions(): never {
            return undefined as never;
          }
        },
      },
      'createRateLimitOptions()',
    ],
  ])('%s that returns nothing', async (_, options, who) => {
    expect(await failure(RateLimitModule.forRootAsync(options), HelloController)).toBe(
      `forRootAsync: ${who} returned nothing; expected the options of the module, as forRoot takes them`,
    );
  });
});

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

describe('figures', () => {
  const RATE = "a number or a text like '100/s' or '1000/5m', with the unit ms, s, m or min, h, d";

  it.each([
    ['10 per minute', `${RATE}, got "10 per minute"`],
    ['10/fortnight', `${RATE}, got "10/fortnight"`],
    ['100', `${RATE}, got "100"`],
    [NaN, 'a finite number above 0, got NaN'],
    [undefined, "a rate, or a 'defaultTier'"],
  ])('a rate of %s', async (rate, message) => {
    const failed = await failure(root({ policies: { hello: { rate } } }));
    expect(failed).toBe(`policies.hello.rate: expected ${message}`);
  });

  it('a window with a burst', async () => {
    const hello = { algorithm: 'sliding-window', rate: 1, burst: 3 };
    expect(await failure(root({ policies: { hello } }))).toBe(
      "policies.hello.burst: expected no burst for a sliding window: leave it out, or use 'token-bucket', got 3",
    );
  });
});

describe('a store', () => {
  it.each([
    ['redis', `'memory', or an object like { type: 'redis', url: 'redis://…' }, got "redis"`],
    ['redis://user:secret@host', "an object, { type: 'redis', url: 'redis://…' }"],
    [{ type: 'redis' }, 'exactly one of client, cluster, or url and/or options, got none of them'],
    [
      { type: 'redis', url: 'redis://h', cluster: { nodes: [] } },
      'exactly one of client, cluster, or url and/or options, got url and cluster',
    ],
  ])('%j', async (store, message) => {
    expect(await failure(root({ store }))).toBe(`store: expected ${message}`);
  });

  it('at an address from a variable that is not set', async () => {
    expect(await failure(root({ store: { type: 'redis', url: undefined } }))).toBe(
      "store.url: expected an address such as 'redis://localhost:6379', got undefined: is the variable set that it comes from?",
    );
  });

  it('with options of ioredis beside its own', async () => {
    expect(await failure(root({ store: { type: 'redis', host: 'h', port: 1 } }))).toMatch(
      /^store\.host: no such option; options of ioredis stand in 'options': \{ type: 'redis', options: \{ host: … \} \}; expected one of type, /,
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

describe('@RateLimit where no guard runs', () => {
  const nothing = (where: string): string =>
    `@RateLimit on ${where} limits nothing, as no guard runs there: it is for handlers of controllers, ` +
    'gateways and resolvers. In a service inject RateLimiter and call tryAcquire, or put @Protect on the method';

  @Injectable()
  class Service {
    @RateLimit('hello')
    work(): void {}
  }

  it('on a method of a service', async () => {
    expect(await failure(root(), Service)).toBe(nothing('Service.work'));
  });

  it('on a method of what a factory has made', async () => {
    @Module({ providers: [{ provide: 'made', useFactory: () => new Service() }] })
    class Made {}
    Reflect.defineMetadata('imports', [], Made);
    expect(await failure(root(), Made)).toBe(nothing('Service.work'));
  });

  it('on a service as a whole', async () => {
    @Injectable()
    @RateLimit('hello')
    class Whole {
      work(): void {}
    }
    expect(await failure(root(), Whole)).toBe(nothing('Whole'));
  });

  it('on a helper of a controller', async () => {
    @Controller()
    class Helped {
      @RateLimit('hello')
      help(): void {}
    }
    expect(await failure(root(), Helped)).toBe(nothing('Helped.help'));
  });

  it('on what a gateway does when somebody connects', async () => {
    @WebSocketGateway()
    @RateLimit('hello')
    class Gateway {
      @SubscribeMessage('say')
      say(): void {}

      @RateLimit('hello')
      handleConnection(): void {}
    }
    expect(await failure(root(), Gateway)).toBe(nothing('Gateway.handleConnection'));
  });

  it.each([
    [undefined, false],
    [['filters'], false],
    [['guards'], true],
  ])('on a field of an object, with enhancers %j', async (fieldResolverEnhancers, isMet) => {
    @Resolver('Book')
    class Books {
      @ResolveField('blurb')
      @RateLimit('hello')
      blurb(): string {
        return '';
      }
    }
    const options = { provide: 'GqlModuleOptions', useValue: { fieldResolverEnhancers } };
    @Module({ imports: [], providers: [options] })
    class Graphql {}
    expect(await failure(root(), Graphql, Books)).toBe(
      isMet
        ? undefined
        : "@RateLimit on Books.blurb limits nothing: Nest guards fields of objects only with fieldResolverEnhancers: ['guards'] " +
            'in the options of GraphQLModule. Or put it on the query that gives the object',
    );
  });

  it('is only warned of on a method that another framework calls', async () => {
    @Injectable()
    class Jobs {
      @SetMetadata('SCHEDULER_TYPE', 1)
      @RateLimit('hello')
      tick(): void {}
    }
    const warnings = new Warnings();
    const builder = Test.createTestingModule({ imports: [root() as never], providers: [Jobs] });
    const app = (await builder.compile()).createNestApplication();
    warnings.listen(app);
    await app.init();
    await app.close();
    expect(warnings.texts).toEqual([
      "@RateLimit on Jobs.tick holds only if what calls it (SCHEDULER_TYPE) runs Nest's guards, which most do not: " +
        'to be sure, ask the RateLimiter there.',
    ]);
  });
});

describe('RateLimitGuard where nothing is limited', () => {
  async function warningsOf(controller: Type, options: object, providers: object[] = []) {
    const warnings = new Warnings();
    const imports = [root(options) as never];
    const builder = Test.createTestingModule({
      imports,
      controllers: [controller],
      providers: providers as never,
    });
    const app = (await builder.compile()).createNestApplication();
    warnings.listen(app);
    await app.init();
    await app.close();
    return warnings.texts;
  }
  const idle = (where: string): string =>
    `RateLimitGuard ${where} limits nothing, as nothing says what to limit: write @RateLimit('name'), which ` +
    "brings its guard along, or apply: ['name'] in forRoot for all routes.";
  const GLOBAL = [{ provide: APP_GUARD, useClass: RateLimitGuard }];

  @Controller()
  class Plain {
    @Get()
    get(): string {
      return '';
    }
  }

  it('for all routes, as @nestjs/throttler wants it', async () => {
    expect(await warningsOf(Plain, { policies: HELLO }, GLOBAL)).toEqual([idle('as APP_GUARD')]);
    expect(await warningsOf(Plain, { policies: HELLO, apply: ['hello'] }, GLOBAL)).toEqual([]);
    expect(await warningsOf(HelloController, { policies: HELLO })).toEqual([]);
  });

  it('on a method or a class', async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Guarded {
      @Get()
      get(): string {
        return '';
      }

      @Get('other')
      @UseGuards(RateLimitGuard)
      other(): string {
        return '';
      }

      @Get('limited')
      @RateLimit('hello')
      limited(): string {
        return '';
      }
    }
    expect(await warningsOf(Guarded, { policies: HELLO })).toEqual([
      idle('on Guarded.get'),
      idle('on Guarded.other'),
    ]);
  });
});
