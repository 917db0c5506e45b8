import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { Degrade, Protect, RateLimit, RateLimitModule } from 'nestjs-weir';
import { checkVersion, LEAST } from '../../lib/stores/optional-package.js';
import { checkNest, checkNode } from '../../lib/versions.js';
import { root as repository } from '../setup/ensure-built.js';
import { failure, HELLO, HelloController, root } from './started-app.js';

// Likely mistakes of a new user, and the words that lead out of them.

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

describe('figures', () => {
  const RATE =
    "a number or a text like '100/s' or '1000/5m', with the unit ms, s, m, h, d or a word: sec, second, min, minute, hour, day";

  it.each([
    ['10 per minute', `${RATE}, got "10 per minute"`],
    ['10/fortnight', `${RATE}, got "10/fortnight"`],
    ['100', `${RATE} (100 a second is '100/s'), got "100"`],
    [NaN, 'a finite number above 0, got NaN'],
    [undefined, "a rate, or a 'defaultTier'"],
  ])('a rate of %s', async (rate, message) => {
    const failed = await failure(root({ policies: { hello: { rate } } }));
    expect(failed).toBe(`policies.hello.rate: expected ${message}`);
  });

  it('a rate in a decorator, told by its place', async () => {
    @Controller()
    class Shop {
      @Get()
      @RateLimit({ rate: 'x' as never })
      list(): string {
        return 'ok';
      }
    }
    expect(await failure(root(), Shop)).toBe(
      `@RateLimit on Shop.list: rate: expected ${RATE}, got "x"`,
    );
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
