import { stopAll } from '../support/processes.js';
import {
  codeOf,
  flat,
  GLOBAL,
  migrate,
  moved,
  PACKAGE,
  project,
  written,
} from './migrated-project.js';

afterAll(stopAll);

describe('weir migrate', () => {
  it('makes of the page’s first program its second', async () => {
    const dir = project({ 'src/app.ts': codeOf('before') });
    const { code, out } = await migrate(dir, '--write');
    expect(flat(written(dir, 'src/app.ts'))).toBe(flat(codeOf('after')));
    expect(out).toContain('Written: 2 files. Next: npm install, your formatter, and your tests.');
    expect(code).toBe(0);
    const { dependencies } = JSON.parse(written(dir, 'package.json')) as {
      dependencies: Record<string, string>;
    };
    expect(Object.keys(dependencies)).toEqual(['@nestjs/core', 'nestjs-weir']);
    expect(await migrate(dir)).toMatchObject({
      code: 0,
      out: 'Nothing to change: nothing here uses @nestjs/throttler.\n',
    });
  });

  it.each([
    [
      'several throttlers',
      GLOBAL,
      [
        "policies: { short: { algorithm: 'sliding-window', rate: '3/s', key: ['ip', 'route'] }, long: { algorithm: 'sliding-window', rate: '100/min', key: ['ip', 'route'] } }, apply: ['short', 'long']",
        'providers: [Other]',
        "import { RateLimitModule } from 'nestjs-weir';",
      ],
    ],
    [
      'figures from elsewhere, and helpers',
      `
import { minutes, seconds, ThrottlerModule } from '@nestjs/throttler';
export const a = ThrottlerModule.forRoot({ throttlers: [{ ttl: minutes(5), limit: 20 }, { name: 'x', ttl: seconds(env.TTL), limit: env.LIMIT }] });
`,
      [
        "default: { algorithm: 'sliding-window', rate: '20/5min', key: ['ip', 'route'] }",
        "x: { algorithm: 'sliding-window', rate: Number(env.LIMIT), period: (env.TTL) * 1000, key: ['ip', 'route'] }",
      ],
    ],
    [
      'a factory',
      `
import { ThrottlerModule } from "@nestjs/throttler"
export const a = ThrottlerModule.forRootAsync({ inject: [Config], useFactory: (config: Config) => [{ ttl: config.get('TTL'), limit: config.get('LIMIT') }] })
`,
      [
        'import { RateLimitModule } from "nestjs-weir"\n'.trim(),
        'RateLimitModule.forRootAsync({inject: [Config], useFactory: (config: Config) => ({policies: {default: { algorithm: "sliding-window", rate: Number(config.get(\'LIMIT\')), period: Number(config.get(\'TTL\')), key: ["ip", "route"] }}})})',
      ],
    ],
    [
      'a class that makes the options',
      `
import { ThrottlerModuleOptions, ThrottlerOptionsFactory } from '@nestjs/throttler';
export class Options implements ThrottlerOptionsFactory {
  createThrottlerOptions(): ThrottlerModuleOptions {
    return [{ ttl: 10_000, limit: 2 }];
  }
}
`,
      [
        "import { RateLimitModuleInput, RateLimitOptionsFactory } from 'nestjs-weir';",
        'export class Options implements RateLimitOptionsFactory {createRateLimitOptions(): RateLimitModuleInput',
        "rate: '2/10s'",
      ],
    ],
    [
      'Redis, a message, no headers',
      `
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';
export const a = ThrottlerModule.forRoot({ throttlers: [{ ttl: 1, limit: 2, skipIf: isNight }], storage: new ThrottlerStorageRedisService('redis://r'), errorMessage: 'Slow down', setHeaders: false });
`,
      [
        "rate: '2/1ms', key: ['ip', 'route'], skipIf: isNight",
        "store: { type: 'redis', url: 'redis://r' }",
        "rejection: () => new HttpException('Slow down', 429)",
        "headers: { draft: 'off', retryAfter: false }",
        "import { Module, HttpException } from '@nestjs/common';",
      ],
    ],
  ])('moves %s', async (_name, source, parts) => {
    const text = await moved(source);
    for (const part of parts) expect(flat(text)).toContain(flat(part));
    expect(text).not.toContain('hrottler');
  });

  it('gives a limit of a class a name where a method has another, and knows aliases', async () => {
    const text = await moved(
      `
import { Controller, Get, UseGuards } from '@nestjs/common';
import { SkipThrottle as Free, Throttle as T } from '@nestjs/throttler';

@T({ short: { limit: 5, ttl: 1000 } })
@UseGuards(AuthGuard)
@Controller()
export class BigOrdersController {
  @T({ short: { limit: 1, ttl: 2000 }, long: { limit: 7 } })
  @Get()
  one() {}

  @Free({ short: true })
  @Get('two')
  two() {}

  @Free({ short: true, long: true })
  @Get('three')
  three() {}
}
`,
      { 'src/app.ts': GLOBAL },
    );
    for (const part of [
      "@RateLimit({ name: 'big-orders-short', algorithm: 'sliding-window', rate: '5/s' }, { instead: 'short' })\n@UseGuards(AuthGuard)",
      "  @RateLimit({ algorithm: 'sliding-window', rate: '1/2s' }, { instead: 'big-orders-short' })\n  @RateLimit({ algorithm: 'sliding-window', rate: '7/min' }, { instead: 'long' })\n  @Get()",
      "  @SkipRateLimit('short')\n",
      '  @SkipRateLimit()\n',
      "import { Controller, Get, UseGuards } from '@nestjs/common';\nimport { RateLimit, SkipRateLimit } from 'nestjs-weir';\n",
    ]) {
      expect(text).toContain(part);
    }
  });

  it('leaves no module exported that is not imported, and no list with a hole', async () => {
    const text = await moved(`
import { Global, Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';

@Global()
@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 1000, limit: 3 }])],
  providers: [
    // For all routes.
    { provide: APP_GUARD, useClass: ThrottlerGuard },
  ],
  exports: [ThrottlerModule],
})
export class LimitsModule {}

@Module({ exports: [ThrottlerModule, Other, ThrottlerModule] })
export class SharedModule {}
`);
    expect(flat(text)).toContain("apply: ['default']})]}) export class LimitsModule");
    expect(text).toContain('@Module({ exports: [Other] })');
    expect(text).not.toContain('hrottler');
  });

  it('knows names that are imported from within the package', async () => {
    const dir = project({
      'src/a.ts': `
import { APP_GUARD } from '@nestjs/core/constants';
import { ThrottlerModule } from '@nestjs/throttler/dist/throttler.module';
import { ThrottlerGuard } from '@nestjs/throttler/dist/throttler.guard';
@Module({
  imports: [ThrottlerModule.forRoot([{ ttl: 1000, limit: 3 }])],
  providers: [Other, { provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`,
    });
    expect((await migrate(dir, '--write')).code).toBe(0);
    const text = written(dir, 'src/a.ts');
    expect(text).toContain("import { RateLimitModule } from 'nestjs-weir';\n@Module");
    expect(text).not.toMatch(/hrottler|APP_GUARD/);
    expect(written(dir, 'package.json')).not.toContain('throttler');
    const kept = project({
      'src/a.ts': "export * from '@nestjs/throttler/dist/throttler.constants';\n",
    });
    await migrate(kept, '--write');
    expect(written(kept, 'package.json')).toContain('@nestjs/throttler');
  });

  it('applies to every route what the module itself has, and in a test only with a guard there', async () => {
    const forRoot = (name: string) =>
      `ThrottlerModule.forRoot([{ name: '${name}', ttl: 1000, limit: 3 }])`;
    const imported = "import { ThrottlerModule } from '@nestjs/throttler';\n";
    const dir = project({
      'src/app.ts': GLOBAL,
      'src/other.module.ts': `${imported}export const other = ${forRoot('other')};\n`,
      'src/a.spec.ts': `${imported}Test.createTestingModule({ imports: [${forRoot('one')}] });\n`,
      'test/b.e2e-spec.ts': `${imported.replace('{ ', '{ ThrottlerGuard, ')}Test.createTestingModule({ imports: [${forRoot('two')}], providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }] });\n`,
    });
    await migrate(dir, '--write');
    const applied = (file: string) => /apply: (.*),/.exec(written(dir, file))?.[1];
    expect(applied('src/app.ts')).toBe("['short', 'long']");
    expect(applied('src/other.module.ts')).toBe("['other']");
    expect(applied('src/a.spec.ts')).toBeUndefined();
    expect(applied('test/b.e2e-spec.ts')).toBe("['two']");
  });

  it('takes the comment of what goes along, and leaves that of its neighbour', async () => {
    const text = await moved(`
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard } from '@nestjs/throttler';
@Module({
  providers: [
    Before, // one
    // Limits all routes.
    { provide: APP_GUARD, useClass: ThrottlerGuard },
    // Catches errors.
    After,
  ],
})
export class AppModule {}
`);
    expect(text).toContain(
      '  providers: [\n    Before, // one\n    // Catches errors.\n    After,\n  ],',
    );
  });

  it('takes a double of the guard out of a test that has no more use for it', async () => {
    const text = await moved(`
import { CanActivate, Get } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';
const builder = () => {
  const open: CanActivate = {
    canActivate: jest.fn(() => true),
  };
  const used = { canActivate: () => true };
  Test.createTestingModule({}).overrideGuard(ThrottlerGuard).useValue(open);
  return Test.createTestingModule({ providers: [used] }).overrideGuard(ThrottlerGuard).useValue(used);
};
`);
    expect(text).toContain(`
import { Get } from '@nestjs/common';
import { overrideRateLimits } from 'nestjs-weir/testing';
const builder = () => {
  const used = { canActivate: () => true };
  overrideRateLimits(Test.createTestingModule({}), { enabled: false });
`);
  });

  it('gives each figure that is worked out a line of its own', async () => {
    const text = await moved(`
import { ThrottlerModule } from '@nestjs/throttler';
export const a = ThrottlerModule.forRoot([{ ttl: Number(process.env.A_LONG_NAME_OF_THE_TTL), limit: Number(process.env.A_LONG_NAME_OF_THE_LIMIT) }]);
`);
    expect(text).toMatch(/^ +rate: Number\(.*\),\n +period: Number\(.*\),\n +key:/m);
  });

  it('keeps the headers that something reads, and tells of words that are others', async () => {
    const dir = project({
      'src/a.ts': GLOBAL,
      'src/client.ts': "export const left = (headers) => headers['x-ratelimit-remaining'];\n",
      'test/a.e2e-spec.ts': `
// The answer of @nestjs/throttler.
expect(body.message).toBe('ThrottlerException: Too Many Requests');
expect(headers['X-RateLimit-Limit-short']).toBe('3');
`,
    });
    const { code, out } = await migrate(dir, '--write');
    expect(written(dir, 'src/a.ts')).toContain(
      "apply: ['short', 'long'],\n    headers: { legacy: true },",
    );
    expect(await moved(GLOBAL)).not.toContain('headers');
    expect(out).toContain(
      'src/a.ts:6  X-RateLimit-… tell of the tightest policy, without its name (docs/throttler-differences.md#headers)',
    );
    expect(code).toBe(1);
    expect(out).toContain(
      'test/a.e2e-spec.ts:3  the body of a 429 has other words (docs/throttler-differences.md#answers)',
    );
    expect(out).toContain(
      'test/a.e2e-spec.ts:4  headers by the name of a policy are those of the draft (docs/throttler-differences.md#headers)',
    );
  });

  it('moves helpers of the throttler also where it does not know what they are for', async () => {
    const text = await moved(`
import { minutes, seconds, ThrottlerModule } from '@nestjs/throttler';
export const TTL = seconds(Number(process.env.TTL ?? 60));
export const LONGER = minutes(a + b);
export const PART = LONGER / seconds(2);
export const a = ThrottlerModule.forRoot([{ ttl: TTL, limit: 3 }]);
`);
    expect(text).toContain('export const TTL = Number(process.env.TTL ?? 60) * 1000;');
    expect(text).toContain('export const LONGER = (a + b) * 60000;');
    expect(text).toContain('export const PART = LONGER / (2 * 1000);');
    expect(text).not.toContain('hrottler');
  });

  it('makes decorators of guards that stand at classes and methods', async () => {
    const text = await moved(`
import { Controller, Get, UseGuards } from '@nestjs/common';
import { Throttle, ThrottlerGuard } from '@nestjs/throttler';

@UseGuards(ThrottlerGuard)
@Controller('a')
export class AController {
  @Throttle({ default: { limit: 1, ttl: 1000 } })
  @Get()
  one() {}
}

@Controller('b')
export class BController {
  @UseGuards(ThrottlerGuard, AuthGuard)
  @Get()
  one() {}

  @UseGuards(ThrottlerGuard)
  @Throttle({ default: { limit: 1, ttl: 1000 } })
  @Get('two')
  two() {}
}
`);
    expect(text).toContain("@RateLimit('default')\n@Controller('a')");
    expect(text).toContain(
      "  @RateLimit({ algorithm: 'sliding-window', rate: '1/s' }, { instead: 'default' })\n  @Get()",
    );
    expect(text).toContain("  @UseGuards(AuthGuard)\n  @RateLimit('default')\n  @Get()");
    expect(text).toContain(
      "{\n  @RateLimit({ algorithm: 'sliding-window', rate: '1/s' })\n  @Get('two')".replace(
        '{\n',
        '',
      ),
    );
  });

  it('moves tests, errors and guards that are only there for GraphQL', async () => {
    const dir = project({
      'src/gql.guard.ts': `
import { ThrottlerGuard } from '@nestjs/throttler';
export class GqlThrottlerGuard extends ThrottlerGuard {
  getRequestResponse(context) { return context; }
  protected async getTracker(req: Record<string, any>): Promise<string> {
    return req.ips.length ? req.ips[0] : req.ip; // as the throttler's README has it
  }
}
`,
      'src/a.module.ts': `
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerException, ThrottlerModule } from '@nestjs/throttler';
import { GqlThrottlerGuard } from './gql.guard';
@Module({ imports: [ThrottlerModule.forRoot([{ ttl: 1000, limit: 1 }])], providers: [{ provide: APP_GUARD, useClass: GqlThrottlerGuard }] })
export class A {}
@Catch(ThrottlerException)
export class Filter { catch(error: ThrottlerException) { return error instanceof ThrottlerException; } }
`,
      'src/a.spec.ts': `
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
const module = await Test.createTestingModule({ imports: [ThrottlerModule.forRoot([{ ttl: 1000, limit: 1 }])] })
  .overrideGuard(ThrottlerGuard)
  .useValue({ canActivate: () => true })
  .compile();
`,
    });
    const { code, out } = await migrate(dir, '--write');
    const spec = flat(written(dir, 'src/a.spec.ts'));
    expect(spec).toContain(
      'await overrideRateLimits(Test.createTestingModule({imports: [RateLimitModule.forRoot({',
    );
    expect(spec).toContain(']}), {enabled: false}) .compile();');
    expect(spec).toContain("import {overrideRateLimits} from 'nestjs-weir/testing';");
    const module = flat(written(dir, 'src/a.module.ts'));
    expect(module).toContain("apply: ['default']");
    expect(module).not.toContain('providers');
    expect(module).not.toContain('GqlThrottlerGuard');
    expect(module).toContain('@Catch(RateLimitedException)');
    expect(module).toContain('error instanceof RateLimitedException');
    expect(out).toMatch(
      /src\/gql.guard.ts:3 {2}this guard is needed no more: .*Delete it; what else it does becomes key, skipIf or rejection \(docs\/migrating-from-throttler.md#word-by-word\)/,
    );
    expect(code).toBe(1);
    // Something still imports it.
    expect(written(dir, 'package.json')).toContain('@nestjs/throttler');
  });

  it('lists with its line what needs a person, and leaves it as it is', async () => {
    const source = `
import * as throttler from '@nestjs/throttler';
import { Throttle, ThrottlerGuard, ThrottlerModule, ThrottlerStorage, getOptionsToken } from '@nestjs/throttler';
export { SkipThrottle } from '@nestjs/throttler';
export const module = ThrottlerModule.forRoot(options);
export const byCaller = ThrottlerModule.forRoot([{ ttl: 1000, limit: (context) => 3 }]);
export const Slow = () => Throttle(FIGURES);
export class MyGuard extends ThrottlerGuard {
  getTracker(req) { return req.user.id; }
}
export class Service { constructor(private readonly storage: ThrottlerStorage) {} }
builder.overrideProvider(getOptionsToken()).useValue({});
`;
    const dir = project({
      'src/a.ts': source,
      'src/b.ts': 'import { Throttle } from "@nestjs/throttler";\nclass {',
    });
    const { code, out } = await migrate(dir, '--write');
    expect(code).toBe(1);
    for (const line of [
      'src/a.ts:2  imports the throttler as a whole',
      'src/a.ts:4  exports names of the throttler on',
      'src/a.ts:5  the options of forRoot are not written out here',
      'src/a.ts:6  a limit by caller becomes tiers',
      'src/a.ts:7  a decorator made of @Throttle',
      'src/a.ts:8  this guard has no counterpart',
      'src/a.ts:11  a storage of your own has no counterpart',
      'src/a.ts:12  in tests overrideRateLimits',
      'src/b.ts:2  cannot be read (',
    ]) {
      expect(out).toContain(`\n  ${line}`);
    }
    expect(written(dir, 'src/a.ts')).toBe(source);
  });

  it('tells of blocks and trackers that are lost, and counts seconds before version 5', async () => {
    const dir = project({
      'package.json': PACKAGE.replace('^6.4.0', '^4.2.1').replace('^12.0.0', '^9.0.0'),
      'src/a.ts': `
import { Throttle, ThrottlerModule } from '@nestjs/throttler';
export const a = ThrottlerModule.forRoot({ ttl: 60, limit: 10, blockDuration: 5, ignoreUserAgents: [/bot/] });
export class B { @Throttle(3, 30) c() {} }
`,
    });
    const { code, out } = await migrate(dir);
    expect(code).toBe(1);
    expect(out).toContain("rate: '10/min'");
    expect(out).toContain("rate: '3/30s'");
    expect(out).toContain('src/a.ts:3  blockDuration is gone');
    expect(out).toContain('(docs/throttler-differences.md#nobody-is-blocked)');
    expect(out).toContain('skipIf: (context) => /bot/.test(');
    expect(out).toContain('src/a.ts:4  no guard of the throttler was found for it');
    expect(out).toContain(
      'package.json:1  nestjs-weir needs Nest 11 or 12, and this is Nest 9: update it first',
    );
  });
});
