import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stopAll } from '../support/processes.js';
import { flat, migrate, moved, PACKAGE, project, written } from './migrated-project.js';

afterAll(stopAll);

const APP = (options: string, more = '') => `
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
${more}
@Module({
  imports: [
    ThrottlerModule.forRoot(${options}),
  ],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
export class AppModule {}
`;

describe('weir migrate, of figures,', () => {
  it('makes numbers of settings, which are texts, and says what stops the start', async () => {
    const dir = project({
      'src/a.ts': `
import { ThrottlerModule } from '@nestjs/throttler';
const LIMIT = 5;
export const a = ThrottlerModule.forRootAsync({
  useFactory: (config: Config) => [
    { ttl: config.get('TTL'), limit: config.get('LIMIT') },
    { name: 'parsed', ttl: parseInt(config.get('TTL') ?? '1000', 10), limit: LIMIT },
  ],
});
`,
    });
    const { code, out } = await migrate(dir);
    expect(out).toContain("rate: Number(config.get('LIMIT')),");
    expect(out).toContain("period: Number(config.get('TTL')),");
    expect(out).toContain('rate: LIMIT,');
    expect(out).toContain("period: parseInt(config.get('TTL') ?? '1000', 10),");
    for (const line of [6, 7]) {
      expect(out).toContain(
        `src/a.ts:${line}  a figure that is no number stops the start, where the throttler limited nothing: see what is in there (docs/throttler-differences.md#figures)`,
      );
    }
    expect(code).toBe(1);
  });
});

describe('weir migrate, of code that has no counterpart,', () => {
  it('keeps trackers, messages and storages as comments beside what it has written', async () => {
    const dir = project({
      'src/a.ts': APP(
        `{
      storage: new MyStorage(),
      errorMessage: (context, detail) => words(detail),
      throttlers: [
        {
          ttl: 1000,
          limit: 2,
          getTracker: () => 'shared',
          generateKey: (context, tracker) => {
            return md5(\`\${tracker}\`);
          },
          ignoreUserAgents: AGENTS,
        },
      ],
    }`,
        "import { md5, words, AGENTS } from './own';",
      ),
    });
    const { code, out } = await migrate(dir, '--write');
    const text = written(dir, 'src/a.ts');
    for (const kept of [
      "        // weir: getTracker: () => 'shared'\n",
      '        // weir: generateKey: (context, tracker) => {\n        //   return md5(`${tracker}`);\n        // }\n',
      '        // weir: ignoreUserAgents: AGENTS\n',
      '      // weir: errorMessage: (context, detail) => words(detail)\n',
      '      // weir: storage: new MyStorage()\n',
      "import { md5, words, AGENTS } from './own';",
    ]) {
      expect(text).toContain(kept);
    }
    expect(code).toBe(1);
    const lines = text.split('\n');
    for (const field of ['getTracker', 'generateKey', 'ignoreUserAgents', 'errorMessage']) {
      const line = lines.findIndex((one) => one.includes(`// weir: ${field}`)) + 1;
      expect(out).toContain(`src/a.ts:${line}  ${field} is a comment now: write`);
    }
  });

  it('keeps them above decorators, and leaves what is spread in', async () => {
    const text = await moved(
      `
import { Throttle } from '@nestjs/throttler';
export class A {
  @Throttle({ default: { limit: 3, ttl: 1000, getTracker: (req) => req.headers['x-api-key'] } })
  one() {}

  @Throttle({ default: { ...FIGURES, limit: 3 } })
  two() {}
}
`,
      { 'src/app.ts': APP('[{ ttl: 1000, limit: 1 }]') },
    );
    expect(text).toContain(
      "  // weir: getTracker: (req) => req.headers['x-api-key']\n  @RateLimit({ algorithm: 'sliding-window', rate: '3/s' }, { instead: 'default' })\n  one()",
    );
    expect(text).toContain('@Throttle({ default: { ...FIGURES, limit: 3 } })');
  });

  it('says again in decorators which user agents are ignored, and tells of what else a throttler has', async () => {
    const decorated = `
import { Throttle } from '@nestjs/throttler';
export class A {
  @Throttle({ default: { limit: 3, ttl: 1000 } })
  one() {}
}
`;
    const dir = project({
      'src/app.ts': APP('[{ ttl: 1000, limit: 1, ignoreUserAgents: [/bot/i, /probe/g] }]'),
      'src/a.ts': decorated,
    });
    expect((await migrate(dir, '--write')).code).toBe(0);
    const agent = "context.switchToHttp().getRequest().headers['user-agent'] ?? ''";
    const skipIf = `skipIf: (context) => /bot/i.test(${agent}) || /probe/g.test(${agent})`;
    expect(written(dir, 'src/app.ts')).toContain(skipIf);
    expect(written(dir, 'src/a.ts')).toContain(`rate: '3/s', ${skipIf} }, { instead: 'default' })`);
    const another = project({
      'one/app.ts': APP('[{ ttl: 1000, limit: 1, ignoreUserAgents: [/bot/] }]'),
      'two/app.ts': APP('[{ ttl: 1000, limit: 1 }]'),
      'two/a.ts': decorated,
      'one/controllers/a.ts': decorated,
    });
    await migrate(another, '--write');
    expect(written(another, 'one/controllers/a.ts')).toContain('/bot/');
    expect(written(another, 'two/a.ts')).not.toContain('/bot/');
    const other = project({
      'src/app.ts': APP('[{ ttl: 1000, limit: 1, skipIf: isNight, ignoreUserAgents: [/bot/] }]'),
      'src/a.ts':
        "import { Throttle } from '@nestjs/throttler';\nexport class A { @Throttle({ default: { limit: 3, ttl: 1000 } }) one() {} }\n",
    });
    const { out } = await migrate(other, '--write');
    expect(written(other, 'src/app.ts')).toContain(
      `skipIf: (context) => (isNight)(context) || /bot/.test(${agent}),`,
    );
    expect(out).toContain(
      'src/a.ts:2  default has skipIf, which a policy in a decorator has to repeat (docs/throttler-differences.md#decorators-add-up)',
    );
  });

  it('does not say of a decorator that it has left that it holds now', async () => {
    const { out } = await migrate(
      project({
        'src/a.ts':
          "import { Throttle } from '@nestjs/throttler';\n@Throttle(FIGURES)\nexport class A {}\n",
      }),
    );
    expect(out).toContain('src/a.ts:2  the figures are not written out here');
    expect(out).not.toContain('now it holds');
  });

  it('makes a rejection of a message that says nothing else than a decision can', async () => {
    const options = (message: string) =>
      `{ errorMessage: ${message}, throttlers: [{ ttl: 1000, limit: 2 }] }`;
    const text = await moved(
      APP(options('(context, d) => `${context.getClass().name} ${d.tracker} ${d.totalHits}`')),
    );
    expect(text).toContain(
      'rejection: (decision, context) => new HttpException(`${context.getClass().name} ${context.switchToHttp().getRequest().ip} ${(decision.limit - decision.remaining + 1)}`, 429),',
    );
    expect(await moved(APP(options('(context, d) => d.key')))).toContain(
      '// weir: errorMessage: (context, d) => d.key',
    );
  });
});

describe('weir migrate, of what hangs together,', () => {
  const CONFIG = `
import { ThrottlerModuleOptions } from '@nestjs/throttler';
export const limits: ThrottlerModuleOptions = [{ name: 'short', ttl: 1000, limit: 1 }];
`;

  it('moves options that stand in a const of another file, with their type', async () => {
    const app = APP('limits', "import { limits } from './throttler.config.js';");
    const dir = project({ 'src/throttler.config.ts': CONFIG, 'src/app.ts': app });
    expect((await migrate(dir, '--write')).code).toBe(0);
    expect(flat(written(dir, 'src/throttler.config.ts'))).toContain(
      "export const limits: RateLimitModuleInput = {policies: {short: {algorithm: 'sliding-window', rate: '1/s', key: ['ip', 'route']}}, apply: ['short']};",
    );
    expect(written(dir, 'src/app.ts')).toContain('RateLimitModule.forRoot(limits)');
  });

  it('leaves a const that something else reads, with its type and its module', async () => {
    const app = APP('limits', "import { limits } from './throttler.config';");
    const files = {
      'src/throttler.config.ts': CONFIG,
      'src/app.ts': app,
      'src/other.ts': "import { limits } from './throttler.config';\nlog(limits[0].ttl);\n",
    };
    const dir = project(files);
    const { out } = await migrate(dir, '--write');
    expect(written(dir, 'src/throttler.config.ts')).toBe(CONFIG);
    expect(written(dir, 'src/app.ts')).toContain('ThrottlerModule.forRoot(limits)');
    expect(out).toMatch(/src\/app.ts:\d+ {2}the options of forRoot are not written out here/);
    expect(out).toContain('src/throttler.config.ts:3  options of this type are not moved here');
  });

  it('leaves module and decorators while a guard of the project needs them', async () => {
    const files = {
      'src/key.guard.ts': `
import { ThrottlerGuard } from '@nestjs/throttler';
export class KeyGuard extends ThrottlerGuard {
  protected async getTracker(req: Request) { return req.apiKey; }
}
`,
      'src/app.ts': APP(
        '[{ ttl: 1000, limit: 1 }]',
        "import { KeyGuard } from './key.guard';",
      ).replace('useClass: ThrottlerGuard', 'useClass: KeyGuard'),
      'src/a.ts':
        "import { Throttle } from '@nestjs/throttler';\nexport class A { @Throttle({ default: { limit: 3, ttl: 1000 } }) one() {} }\n",
    };
    const dir = project(files);
    const { code, out } = await migrate(dir, '--write');
    for (const [file, text] of Object.entries(files)) expect(written(dir, file)).toBe(text);
    expect(written(dir, 'package.json')).toBe(`${PACKAGE}\n`);
    expect(code).toBe(1);
    expect(out).toMatch(
      /src\/app.ts:\d+ {2}KeyGuard is a guard of the throttler, so its module and decorators stay: put ThrottlerGuard in its place, run this again/,
    );
    expect(out).toContain('src/key.guard.ts:3  this guard has no counterpart');
    expect(out).toContain('Nothing to change: nothing can be moved by itself.');
  });

  it('leaves a test of such a guard alone', async () => {
    const spec = `
import { ThrottlerModule } from '@nestjs/throttler';
import { KeyGuard } from './key.guard';
Test.createTestingModule({ imports: [ThrottlerModule.forRoot([{ ttl: 1, limit: 1 }])], providers: [KeyGuard] });
`;
    const dir = project({
      'src/app.ts': APP('[{ ttl: 1000, limit: 1 }]'),
      'src/key.guard.ts':
        "import { ThrottlerGuard } from '@nestjs/throttler';\nexport class KeyGuard extends ThrottlerGuard { getTracker() { return 'a'; } }\n",
      'src/key.guard.spec.ts': spec,
    });
    const { out } = await migrate(dir, '--write');
    expect(written(dir, 'src/key.guard.spec.ts')).toBe(spec);
    expect(written(dir, 'src/app.ts')).toContain('RateLimitModule');
    expect(out).toContain('src/key.guard.spec.ts:4  KeyGuard is a guard of the throttler');
  });

  it('takes guards that read the client of a gateway for the throttler’s own', async () => {
    const text = await moved(
      `
import { UseGuards } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';
export class WsGuard extends ThrottlerGuard {
  async handleRequest(props) { return this.count(props.context.switchToWs().getClient()._socket.remoteAddress); }
}
@UseGuards(WsGuard)
export class Gateway {}
`,
    );
    expect(text).toContain("@RateLimit('default')\nexport class Gateway");
  });

  it('removes imports that only what was moved had a use for, and no others', async () => {
    const text = await moved(
      APP(
        '[{ ttl: 1000, limit: 1, blockDuration: long ? BLOCK : days(1) + hours(1) }]',
        `import type { A } from './types';
import { BLOCK, long } from './figures';
import days from './days';
import hours = require('hours');
import unused from 'unused';
export type B = A | typeof long;`,
      ).replace('APP_GUARD } from', 'APP_FILTER, APP_GUARD } from'),
    );
    expect(text).toContain(`
import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { RateLimitModule } from 'nestjs-weir';
import type { A } from './types';
import { long } from './figures';
import unused from 'unused';
export type B`);
  });
});

describe('weir migrate, of a file’s own looks,', () => {
  it('takes its indent, and keeps the comments of what it writes anew', async () => {
    const text = await moved(`
import { ThrottlerModule } from "@nestjs/throttler";
export const a = [
    // For all.
    ThrottlerModule.forRoot([
        // The only one.
        {
            ttl: 1000, // a second
            limit: Math.max(
                3,
                4,
            ),
        },
        // No more.
    ]),
];
`);
    expect(text).toContain(`
export const a = [
    // For all.
    RateLimitModule.forRoot({
        policies: {
            // The only one.
            // a second
            default: {
                algorithm: "sliding-window",
                rate: Math.max(
                    3,
                    4,
                ),
                period: 1000,
                key: ["ip", "route"],
            },
            // No more.
        },
    }),
];
`);
  });

  it('lists expressions that look for the throttler’s words and headers', async () => {
    const dir = project({
      'src/app.ts': APP('[{ ttl: 1000, limit: 1 }]'),
      'test/a.spec.ts': `
expect(body.message).toMatch(/ThrottlerException: .*/);
expect(headers['Retry-After-short']).toBeDefined();
`,
      'test/b.spec.ts': "expect(headers['retry-after-long']).toBe('1');\n",
    });
    const { out } = await migrate(dir);
    expect(out).toContain('test/a.spec.ts:2  the body of a 429 has other words');
    expect(out).toContain('test/a.spec.ts:3  headers by the name of a policy');
    expect(out).toContain('test/b.spec.ts:1  headers by the name of a policy');
  });
});

describe('weir migrate, of package.json,', () => {
  const install = (dir: string, version: string) => {
    const json = JSON.parse(PACKAGE) as { dependencies: Record<string, string> };
    json.dependencies['nestjs-weir'] = version;
    writeFileSync(join(dir, 'package.json'), `${JSON.stringify(json, null, 2)}\n`);
  };

  it('writes after npm install as the page has it, and leaves the version that was installed', async () => {
    const dir = project({ 'src/app.ts': APP('[{ ttl: 1000, limit: 1 }]') });
    install(dir, 'file:../weir.tgz');
    expect(await migrate(dir, '--write')).toMatchObject({ code: 0, err: '' });
    const after = written(dir, 'package.json');
    expect(after).toContain('"nestjs-weir": "file:../weir.tgz"');
    expect(after).not.toContain('@nestjs/throttler');
  });

  it('does not write over other changes of it', async () => {
    const dir = project({ 'src/app.ts': APP('[{ ttl: 1000, limit: 1 }]') });
    writeFileSync(join(dir, 'package.json'), PACKAGE.replace('shop', 'market'));
    const { code, err, out } = await migrate(dir, '--write');
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('git could not bring back package.json');
  });

  it('knows it also in a folder of a larger repository', async () => {
    const top = project({
      'apps/shop/package.json': PACKAGE,
      'apps/shop/src/app.ts': APP('[{ ttl: 1, limit: 1 }]'),
    });
    const dir = join(top, 'apps/shop');
    install(dir, '^0.1.0');
    expect(await migrate(dir, '--write')).toMatchObject({ code: 0, err: '' });
    expect(execFileSync('git', ['status', '--short'], { cwd: top, encoding: 'utf8' })).toContain(
      'app.ts',
    );
  });
});
