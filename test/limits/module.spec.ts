import {
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  type DynamicModule,
  type NestHybridApplicationOptions,
  type OnModuleDestroy,
  type Type,
} from '@nestjs/common';
import { APP_GUARD, ModulesContainer } from '@nestjs/core';
import { MessagePattern, Transport, type MicroserviceOptions } from '@nestjs/microservices';
import {
  InvalidArgumentError,
  LimiterClosedError,
  RateLimit,
  RateLimiter,
  RateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
  UnknownAppError,
  UnknownOptionError,
  type RateLimitModuleInput,
  type RateLimitOptionsFactory,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

const ONCE = { rate: 1, period: '1h' } as const;

@Controller()
class NamedController {
  @Get('named')
  @RateLimit('once')
  named(): string {
    return 'ok';
  }
}

@Controller()
class PlainController {
  @Get('plain')
  plain(): string {
    return 'ok';
  }

  @Get('other')
  other(): string {
    return 'ok';
  }

  @Get('skipped')
  @SkipRateLimit()
  skipped(): string {
    return 'ok';
  }
}

const started: HttpApp[] = [];

async function start(
  imports: (DynamicModule | Type)[],
  controllers: Type[],
  warnings?: Warnings,
  platform: Platform = 'express',
): Promise<HttpApp> {
  const http = await startHttp(platform, { imports, controllers }, warnings?.listen);
  started.push(http);
  return http;
}

const withOptions = (options: RateLimitModuleInput, ...controllers: Type[]): Promise<HttpApp> =>
  start([RateLimitModule.forRoot({ clock: new ManualClock(), ...options })], controllers);

async function statuses(http: HttpApp, ...paths: string[]): Promise<number[]> {
  const all: number[] = [];
  for (const path of paths) all.push((await http.get(path)).status);
  return all;
}

afterEach(async () => {
  for (const http of started.splice(0)) await http.close();
});

describe('forRootAsync', () => {
  @Injectable()
  class Settings implements RateLimitOptionsFactory {
    createRateLimitOptions(): Promise<RateLimitModuleInput> {
      return Promise.resolve({ policies: { once: ONCE } });
    }
  }

  @Module({ providers: [Settings], exports: [Settings] })
  class SettingsModule {}

  it.each([
    [
      'useFactory and inject',
      {
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: (settings: Settings) => settings.createRateLimitOptions(),
      },
    ],
    ['useClass', { useClass: Settings }],
    ['useExisting', { imports: [SettingsModule], useExisting: Settings }],
  ])('takes options by %s', async (_, options) => {
    const http = await start([RateLimitModule.forRootAsync(options)], [NamedController]);
    expect(await statuses(http, '/named', '/named')).toEqual([200, 429]);
  });

  it('wants one of the three', () => {
    expect(() => RateLimitModule.forRootAsync({} as never)).toThrow(
      /useFactory, useClass or useExisting/,
    );
  });
});

describe('forFeature', () => {
  it('brings policies along that are known everywhere', async () => {
    @Module({ imports: [RateLimitModule.forFeature({ once: ONCE })] })
    class Feature {}
    const http = await start([RateLimitModule.forRoot(), Feature], [NamedController]);
    expect(await statuses(http, '/named', '/named')).toEqual([200, 429]);
  });

  it('does not let two policies have one name', async () => {
    const root = RateLimitModule.forRoot({ policies: { once: ONCE } });
    const twice = start([root, RateLimitModule.forFeature({ once: ONCE })], [NamedController]);
    await expect(twice).rejects.toThrow(/once/);
  });
});

describe('apply', () => {
  it('limits every route but those that are skipped', async () => {
    const http = await withOptions({ policies: { once: ONCE }, apply: ['once'] }, PlainController);
    expect(await statuses(http, '/plain', '/other', '/skipped')).toEqual([200, 429, 200]);
    const denied = await http.get('/plain');
    expect(denied.headers.get('content-type')).toMatch('application/problem+json');
  });

  it('charges once what a decorator asks for as well', async () => {
    const policies = { once: ONCE };
    const http = await withOptions({ policies, apply: ['once'] }, NamedController);
    expect(await statuses(http, '/named', '/named')).toEqual([200, 429]);
  });

  it('alone makes a guard global', async () => {
    const applied = await withOptions({ policies: { once: ONCE }, apply: ['once'] });
    const plain = await withOptions({ policies: { once: ONCE } });
    expect(globalGuards(applied)).toEqual([expect.any(RateLimitGuard)]);
    expect(globalGuards(plain)).toEqual([undefined]);
  });

  it('gives routes of their own to controllers of one name', async () => {
    const { One, Two } = { One: namesake('one'), Two: namesake('two') };
    expect(One.name).toBe(Two.name);
    const policies = { once: { ...ONCE, key: 'route' as const } };
    const http = await withOptions({ policies, apply: ['once'] }, One, Two);
    expect(await statuses(http, '/one', '/two', '/one', '/two')).toEqual([200, 200, 429, 429]);
  });

  it('gives inline policies of their own to controllers of one name', async () => {
    const [One, Two] = [namesake('one', ONCE), namesake('two', ONCE)];
    const http = await withOptions({}, One, Two);
    expect((await http.get('/two')).status).toBe(200);
    expect(await statuses(http, '/one', '/two', '/one')).toEqual([200, 429, 429]);
  });
});

describe('at start', () => {
  it('an unknown policy fails, naming who asks for it and what there is', async () => {
    const options = { policies: { twice: { rate: 2 }, thrice: { rate: 3 } } };
    await expect(withOptions(options, NamedController)).rejects.toThrow(
      /@RateLimit on NamedController\.named: expected one of the policies thrice, twice, got .*once/,
    );
  });

  it.each<[string, RateLimitModuleInput, abstract new (...args: never[]) => Error, RegExp]>([
    ['apply of an unknown policy', { apply: ['nine'] }, InvalidArgumentError, /^apply: .*nine/],
    ['apply of no quota', { apply: 'quota' }, InvalidArgumentError, /^apply: .*no 'quota'/],
    ['apply of a word', { apply: 'all' as never }, InvalidArgumentError, /^apply: /],
    ['an unknown option', { polices: {} } as never, UnknownOptionError, /options\.polices/],
    [
      'a rule that cannot be',
      { alerts: { seconds: { qpsRise: { baseline: '5s' } } } },
      InvalidArgumentError,
      /^alerts\.seconds\.qpsRise\.baseline: expected a duration longer than window/,
    ],
    [
      'an unknown field of a rule',
      { alerts: { seconds: { qpsRise: { faktor: 2 } } } } as never,
      UnknownOptionError,
      /^alerts\.seconds\.qpsRise\.faktor: no such option; did you mean 'factor'\?/,
    ],
    [
      'an unknown field of a mute',
      { alerts: { mute: { peak: { till: '2026-11-17T14:00:00Z' } } } } as never,
      UnknownOptionError,
      /^alerts\.mute\.peak\.till: no such option; .*expected one of series, until/,
    ],
    ['an unknown header', { headers: { xx: true } } as never, UnknownOptionError, /headers\.xx/],
    ['an unknown draft', { headers: { draft: 'draft-3' } } as never, InvalidArgumentError, /draft/],
    ['legacy in words', { headers: { legacy: 'y' } } as never, InvalidArgumentError, /legacy/],
    ['an IPv6 prefix of 0', { ipv6Prefix: 0 }, InvalidArgumentError, /ipv6Prefix/],
    ['a user by name', { user: 'ann' } as never, InvalidArgumentError, /^user: .*function/],
    ['an app without a quota', { app: 'shop' }, InvalidArgumentError, /^quota: .*'app'$/],
    [
      'a quota without an app',
      { quota: { apps: { shop: { guaranteed: 1 }, mail: { guaranteed: 1 } } } },
      InvalidArgumentError,
      /^app: expected to be there beside 'quota': one of shop, mail, or a function that says so for each request$/,
    ],
    [
      'an app that the quota lacks',
      { app: 'shop', quota: { apps: { mail: { guaranteed: 1 } } } },
      UnknownAppError,
      /shop.*mail/,
    ],
    [
      'an early policy by user',
      { policies: { p: { ...ONCE, key: 'user', early: true } } },
      InvalidArgumentError,
      /policies\.p\.early: .*ip, header or global/,
    ],
    [
      'a skipIf that is no function',
      { policies: { p: { ...ONCE, skipIf: true as never } } },
      InvalidArgumentError,
      /policies\.p\.skipIf/,
    ],
  ])('%s fails', async (_, options, type, message) => {
    const failed: unknown = await withOptions(options, PlainController).catch((e: unknown) => e);
    expect(failed).toBeInstanceOf(type);
    expect((failed as Error).message).toMatch(message);
  });

  describe('apply, and handlers of messages that it may not reach', () => {
    @Controller()
    class Messages {
      @MessagePattern('sum')
      sum(): number {
        return 1;
      }

      @MessagePattern('limited')
      @RateLimit('once')
      limited(): number {
        return 1;
      }

      @MessagePattern('free')
      @SkipRateLimit()
      free(): number {
        return 1;
      }
    }
    /** The warnings of an application that connects these microservices. */
    async function warningsOf(
      options: RateLimitModuleInput,
      ...hybrids: NestHybridApplicationOptions[]
    ): Promise<string[]> {
      const warnings = new Warnings();
      const metadata = {
        imports: [RateLimitModule.forRoot(options)],
        controllers: [Messages, PlainController],
      };
      const http = await startHttp('express', metadata, (app) => {
        warnings.listen(app);
        for (const hybrid of hybrids) {
          app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP }, hybrid);
        }
      });
      started.push(http);
      expect(await statuses(http, '/plain')).toEqual([200]);
      return warnings.texts;
    }

    const once = { policies: { once: ONCE, twice: ONCE }, apply: ['once', 'twice'] };
    const inherits = { inheritAppConfig: true };

    it.each<[string, NestHybridApplicationOptions[]]>([
      ['none is connected yet', []],
      ['without the configuration', [{}]],
      ['one of two without it', [{}, inherits]],
      ['the other of two without it', [inherits, {}]],
    ])('%s: says so, and what to write', async (_, hybrids) => {
      expect(await warningsOf(once, ...hybrids)).toEqual([
        "'apply' reaches Messages.sum only if the microservice is connected with " +
          'connectMicroservice(options, { inheritAppConfig: true }); or put ' +
          "@RateLimit('once') and @RateLimit('twice') on them.",
      ]);
    });

    it('names the decorator of the quota where that is what is applied', async () => {
      const quota = { cluster: { capacity: 10 }, apps: { shop: { guaranteed: 5 } } };
      const [warning] = await warningsOf({ ...once, quota, app: 'shop', apply: 'quota' });
      expect(warning).toMatch(/or put @RateLimit\(\) on them\.$/);
    });

    it('says nothing where the microservices inherit it', async () => {
      expect(await warningsOf(once, inherits)).toEqual([]);
      expect(await warningsOf(once, inherits, inherits)).toEqual([]);
    });
  });

  it('warns of nothing otherwise', async () => {
    const warnings = new Warnings();
    const options = { policies: { once: ONCE }, apply: ['once'] };
    await start([RateLimitModule.forRoot(options)], [PlainController, NamedController], warnings);
    expect(warnings.texts).toEqual([]);
  });
});

describe('the life of the limiter', () => {
  it('lasts until no request is on its way, longer than onModuleDestroy', async () => {
    const seen: string[] = [];
    @Injectable()
    class Witness implements OnModuleDestroy {
      constructor(@Inject(RateLimiter) private readonly limiter: RateLimiter) {}

      async onModuleDestroy(): Promise<void> {
        seen.push(`destroy: ${await this.limiter.allow('once', 'k')}`);
      }

      beforeApplicationShutdown(): void {
        seen.push(`before shutdown: ${this.limiter.allow('once', 'k') as boolean}`);
      }
    }
    const http = await startHttp('express', {
      imports: [RateLimitModule.forRoot({ policies: { once: ONCE } })],
      providers: [Witness],
    });
    const limiter = http.app.get(RateLimiter);
    await http.close();
    expect(seen).toEqual(['destroy: true', 'before shutdown: false']);
    expect(() => limiter.allow('once', 'k')).toThrow(LimiterClosedError);
  });

  it('begins before onModuleInit: what a module asks for while it starts is limited', async () => {
    const decided: number[] = [];
    @Module({ controllers: [NamedController] })
    class Impatient {
      constructor(@Inject(RateLimitGuard) private readonly guard: RateLimitGuard) {}

      onModuleInit(): void {
        const headers: Record<string, string> = {};
        const response = { setHeader: (name: string, value: string) => (headers[name] = value) };
        const args = [{ method: 'GET', ip: '192.0.2.1', headers: {} }, response];
        const context = {
          getType: () => 'http',
          getClass: () => NamedController,
          getHandler: () => NamedController.prototype.named,
          getArgs: () => args,
          getArgByIndex: (index: number) => args[index],
        };
        expect(this.guard.canActivate(context as never)).toBe(true);
        decided.push(Number(/r=(\d+)/.exec(headers.RateLimit!)![1]));
      }
    }
    await start([Impatient, RateLimitModule.forRoot({ policies: { once: ONCE } })], []);
    expect(decided).toEqual([0]);
  });
});

/** A controller whose class has the same name as all the others. */
function namesake(path: string, inline?: typeof ONCE): Type {
  @Controller(path)
  class Namesake {
    @Get()
    get(): string {
      return path;
    }
  }
  const get = Object.getOwnPropertyDescriptor(Namesake.prototype, 'get')!;
  if (inline !== undefined) RateLimit(inline)(Namesake.prototype, 'get', get);
  return Namesake;
}

/** The global guards of the module. */
function globalGuards({ app }: HttpApp): unknown[] {
  const modules = [...app.get(ModulesContainer).values()];
  const ours = modules.find(({ metatype }) => metatype === RateLimitModule)!;
  return [...ours.providers.values()]
    .filter(({ token, name }) => String(token ?? name).startsWith(APP_GUARD))
    .map(({ instance }): unknown => instance);
}
