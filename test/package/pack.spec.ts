import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd, type Finished } from '../setup/run-to-end.js';
import { startRedis, stopAll, until, withRedis } from '../support/index.js';
import { spawnOwned } from '../support/processes.js';
import {
  installApp,
  makeApp,
  makeBareApp,
  optionalPeers,
  packPackage,
  removeApp,
  type Nest,
  type Tarball,
} from './packed-package.js';
import { typeFaults, type Resolution } from './type-matrix.js';

/** Node then treats `require` as it did before it could load ES modules. */
const OLD_REQUIRE = '--no-experimental-require-module';

let tarball: Tarball;
let installed: string;
let esmApp: string;
let cjsApp: string;
/** Nest 12 is made of ES modules only, so a Node that cannot require them needs Nest 11. */
let oldApp: string;
let bareApp: string;
let bareOldApp: string;

beforeAll(async () => {
  await ensureBuilt();
  tarball = await packPackage();
  esmApp = makeApp(tarball, 'module');
  cjsApp = makeApp(tarball, 'commonjs');
  const platforms = ['@nestjs/platform-express', '@nestjs/platform-fastify'];
  oldApp = makeBareApp(tarball, 11, ['ioredis', ...platforms]);
  bareApp = makeBareApp(tarball, 12);
  bareOldApp = makeBareApp(tarball, 11);
  installed = await installApp(tarball);
}, BUILD_TIMEOUT_MS);

afterAll(async () => {
  await stopAll();
  for (const app of [installed, esmApp, cjsApp]) if (app !== undefined) removeApp(app);
});

describe('the tarball', () => {
  it('holds what runs and what is read, and nothing else', () => {
    const tops = new Set(tarball.files.map((path) => path.split('/')[0]));
    expect([...tops].sort()).toEqual([
      'LICENSE',
      'README.md',
      'assets',
      'bin',
      'dist',
      'dist-cjs',
      'lua',
      'ops',
      'package.json',
      'schema',
      'workers',
    ]);
  });

  it('has every script', () => {
    expect(tarball.files.filter((path) => path.endsWith('.lua')).sort()).toEqual(
      readdirSync(join(root, 'lua'))
        .map((name) => `lua/${name}`)
        .sort(),
    );
  });

  it('has each entry in both forms with its types, and the code of both once', () => {
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, string | Record<string, Record<string, string>>>;
    };
    const named = Object.values(exports).flatMap((entry) =>
      typeof entry === 'string'
        ? [entry]
        : Object.values(entry).flatMap((one) => Object.values(one)),
    );
    // Beside the entries, the schema and package.json.
    expect(named).toHaveLength((Object.keys(exports).length - 2) * 4 + 2);
    expect(tarball.files).toEqual(expect.arrayContaining(named.map((path) => path.slice(2))));
    const code = tarball.files.filter((path) => path.endsWith('.js'));
    expect(code.filter((path) => /\/(?:nest|limiter)-part\./.test(path))).toEqual([
      'dist-cjs/code/limiter-part.js',
      'dist-cjs/code/nest-part.js',
    ]);
  });

  it('is small, also with all that it depends on', () => {
    expect(tarball.size).toBeLessThan(750_000);
    expect(tarball.files.length).toBeLessThanOrEqual(200);
    expect(tarball.unpackedSize).toBeLessThanOrEqual(1_500_000);
    const modules = join(installed, 'node_modules');
    const names = readdirSync(modules).filter((name) => !name.startsWith('.'));
    expect(names.sort()).toEqual(['argparse', 'js-yaml', 'nestjs-weir']);
    expect(bytesBelow(modules)).toBeLessThanOrEqual(4_000_000);
  });
});

describe('an app that installed the tarball', () => {
  it.each([
    ['ES modules', () => esmApp, 'await import(entry)', ['--input-type=module']],
    ['CommonJS', () => oldApp, 'require(entry)', [OLD_REQUIRE, '--input-type=commonjs']],
  ])('finds every class by its own name, in %s', async (_, app, loaded, flags) => {
    // Errors, Nest's messages and logs are read by these names.
    const code = `
      const all = ['nestjs-weir', 'nestjs-weir/protection', 'nestjs-weir/degradation', 'nestjs-weir/config'];
      for (const entry of all) {
        for (const [name, value] of Object.entries(${loaded})) {
          const isClass = typeof value === 'function' && String(value).startsWith('class');
          if (isClass && value.name !== name) console.log(entry, name, value.name);
        }
      }`;
    expect(await runToEnd(process.execPath, [...flags, '-e', code], { cwd: app() })).toMatchObject({
      code: 0,
      stdout: '',
    });
  });

  it('shows an error that nobody catches with the statement that threw it, and no pages of code', async () => {
    const code = `import { createRateLimiter } from 'nestjs-weir'; createRateLimiter({ policies: { a: { rate: -1 } } });`;
    const args = ['--input-type=module', '-e', code];
    const { stderr } = await runToEnd(process.execPath, args, { cwd: esmApp });
    expect(stderr).toContain('InvalidArgumentError');
    expect(stderr.split('\n')[1]).toMatch(/^throw new .{1,100}$/);
    expect(Math.max(...stderr.split('\n').map(({ length }) => length))).toBeLessThan(500);
  });

  it.each([
    ['an ES module', () => esmApp, ['server.mjs']],
    ['CommonJS', () => cjsApp, ['server.cjs']],
    [
      'CommonJS on a Node that cannot require ES modules',
      () => oldApp,
      [OLD_REQUIRE, 'server.cjs'],
    ],
  ])('limits requests in memory as %s', async (_, app, args) => {
    const url = await serve(app(), args);
    expect(await answersOf(url)).toEqual(['200 local', '429 local', '200 local']);
  });

  it.each([
    ['an ES module', () => esmApp, ['server.mjs']],
    ['CommonJS', () => cjsApp, ['server.cjs']],
    [
      'CommonJS on a Node that cannot require ES modules',
      () => oldApp,
      [OLD_REQUIRE, 'server.cjs'],
    ],
  ])('shares its limits through Redis as %s', async (_, app, args) => {
    const redis = await startRedis();
    const first = await serve(app(), args, redis.url);
    const second = await serve(app(), args, redis.url);
    expect((await fetch(`${second}/a`)).status).toBe(200);
    expect((await fetch(`${first}/a`)).status).toBe(429);
    expect(await answersOf(first, '/c', '/d')).toEqual(['200 store', '429 store', '200 store']);
    const keys = await withRedis(redis.port, (client) => client.keys('weir:{b*}:hourly:*'));
    expect(keys).toHaveLength(3);
    await redis.stop();
  });

  it.each([
    ['12', 'express', () => cjsApp, []],
    ['12', 'fastify', () => cjsApp, []],
    ['11', 'express', () => oldApp, [OLD_REQUIRE]],
    ['11', 'fastify', () => oldApp, [OLD_REQUIRE]],
  ])(
    'limits routes on Nest %s and %s, before and after guards',
    async (major, platform, app, flags) => {
      const { stdout, stderr } = await runToEnd(
        process.execPath,
        [...flags, 'nest-app.cjs', platform],
        { cwd: app() },
      );
      const problem = 'application/problem+json; charset=utf-8';
      // The handler's own error, which the caller never saw; and nothing else.
      expect(stderr.split('\n').filter((line) => !/^ +at /.test(line))).toEqual([
        expect.stringMatching(
          /^Routes\.failing failed, and its caller got another answer: "Error" "down"/,
        ),
        '',
      ]);
      expect(stdout.split('\n')).toEqual([
        `Nest ${major}`,
        '/api/v1/late 200 "late";q=1;w=3600',
        `/api/v1/late 429 "late";q=1;w=3600 ${problem} late`,
        '/api/v1/early 401 "early";q=1;w=3600',
        `/api/v1/early 429 "early";q=1;w=3600 ${problem} early`,
        '/api/v1/cached 200 1 application/json; charset=utf-8 ',
        '/api/v1/cached 200 1 application/json; charset=utf-8 level=1; reason=limited',
        `/api/v1/failing 503 busy ${problem} level=4; reason=failed`,
        '',
      ]);
    },
  );

  it('protects methods on Nest 11 as on Nest 12', async () => {
    const { code, stdout, stderr } = await runToEnd(
      process.execPath,
      [OLD_REQUIRE, 'protect.cjs'],
      { cwd: oldApp },
    );
    expect([stderr, code]).toEqual(['', 0]);
    const { version, answers } = JSON.parse(stdout) as Record<string, unknown>;
    expect(version).toMatch(/^11\./);
    expect(answers).toEqual([
      { id: 0, tag: 'own' },
      { id: 1, tag: 'each' },
      { id: 2, tag: 'made' },
      'PROTECTION_MISSING',
    ]);
  });

  it.each([
    ['an ES module', () => esmApp],
    ['CommonJS', () => cjsApp],
  ])('has one RateLimiter, however %s asks for it', async (_, app) => {
    const { stdout, stderr } = await evaluate(
      app(),
      `import { createRequire } from 'node:module';
       import { createRateLimiter, RateLimiter } from 'nestjs-weir';
       const required = createRequire(process.cwd() + '/x.js')('nestjs-weir');
       console.log(required.RateLimiter === RateLimiter, createRateLimiter() instanceof RateLimiter);
       console.log(required.createRateLimiter() instanceof RateLimiter);
       process.exit();`,
    );
    expect(stdout + stderr).toBe('true true\ntrue\n');
  });

  it('loads what importing runs, and all else when it is first used', async () => {
    const code = `
      const loaded = () => {
        const parts = Object.keys(require.cache).map((file) => /([a-z]+)-part[.]js$/.exec(file)?.[1]);
        return parts.filter((part) => part !== undefined).sort().join(' ');
      };
      const { createRateLimiter, RateLimitModule } = require('nestjs-weir');
      console.log(loaded());
      createRateLimiter({ policies: { api: { rate: '1/h' } } }).allow('api', 'ann');
      console.log(loaded());
      const { NestFactory } = require('@nestjs/core');
      NestFactory.createApplicationContext(RateLimitModule.forRoot(), { logger: ['error'] }).then(() => {
        console.log(loaded());
        process.exit();
      });`;
    const { stdout, stderr } = await runToEnd(process.execPath, ['-e', code], { cwd: cjsApp });
    expect((stdout + stderr).split('\n')).toEqual([
      'algorithms first nest',
      'algorithms first limiter nest',
      // And nothing of Redis or of @Degrade.
      'algorithms config first limiter nest observability overload protection start',
      '',
    ]);
  });

  it('can load every file of its code before all others', async () => {
    const folder = join(cjsApp, 'node_modules/nestjs-weir/dist-cjs/code');
    const files = readdirSync(folder).filter((file) => file.endsWith('-part.js'));
    expect(files.length).toBeGreaterThan(5);
    const code = `
      for (const file of ${JSON.stringify(files)}) {
        for (const one of Object.keys(require.cache)) if (one.includes('dist-cjs')) delete require.cache[one];
        require('${folder}/' + file)(require);
      }`;
    const { stdout, stderr } = await runToEnd(process.execPath, ['-e', code], { cwd: cjsApp });
    expect(stdout + stderr).toBe('');
  });

  it.each([
    ['an ES module', () => esmApp],
    ['CommonJS', () => cjsApp],
  ])('has what is for gRPC beside it, and of the same kind, as %s', async (_, app) => {
    const { stdout, stderr } = await evaluate(
      app(),
      `import { createRequire } from 'node:module';
       import { RateLimiter } from 'nestjs-weir';
       import { limitCalls, limitStream } from 'nestjs-weir/grpc';
       const required = createRequire(process.cwd() + '/x.js')('nestjs-weir/grpc');
       console.log(typeof limitStream, required.limitCalls === limitCalls, typeof RateLimiter);`,
    );
    expect(stdout + stderr).toBe('function true function\n');
  });

  it.each([
    ['an ES module', () => esmApp],
    ['CommonJS', () => cjsApp],
  ])('has the buckets by themselves, without Nest, as %s', async (_, app) => {
    const { stdout, stderr } = await evaluate(
      app(),
      `import { createRequire } from 'node:module';
       import { TokenBucket } from 'nestjs-weir/algorithms';
       const required = createRequire(process.cwd() + '/x.js')('nestjs-weir/algorithms');
       const bucket = new TokenBucket({ capacity: 1, rate: 10 });
       console.log(required.TokenBucket === TokenBucket, bucket.take(0).allowed, bucket.take(0).waitMs);`,
    );
    expect(stdout + stderr).toBe('true true 100\n');
  });

  it.each([
    ['an ES module', () => esmApp, 'module'],
    ['CommonJS', () => cjsApp, 'commonjs'],
  ])('tests itself with the kit as %s', async (_, app, type) => {
    const { stdout, stderr } = await runToEnd(
      process.execPath,
      [`--input-type=${type}`, '-e', type === 'module' ? asModule(KIT) : KIT],
      { cwd: app() },
    );
    expect(stdout + stderr).toBe('200 true\n429 true\n200 true\n');
  });

  it('has the command line, and the schema for editors', async () => {
    const good = join(installed, 'weir.json');
    writeFileSync(good, '{ "policies": { "api": { "rate": "100/min" } } }');
    const weir = join(installed, 'node_modules/.bin/weir');
    const { code, output } = await runToEnd(weir, ['config', 'check', 'weir.json'], {
      cwd: installed,
    });
    expect([code, output]).toEqual([0, 'weir.json: ok\n']);
    const { stdout } = await evaluate(
      installed,
      `import schema from 'nestjs-weir/schema.json' with { type: 'json' };
       console.log(Object.keys(schema.properties).includes('policies'));`,
    );
    expect(stdout).toBe('true\n');
  });
});

describe('the types', () => {
  const files = (hasPeers: boolean) => [
    'consumer',
    'refused',
    ...(hasPeers ? ['consumer-of-peers'] : []),
  ];

  // Each way to find them on each Nest, and each of these with or without the optional peers.
  it.each<[Nest, Resolution, string, ts.CompilerOptions]>([
    [12, 'node16', 'without', { exactOptionalPropertyTypes: true }],
    [12, 'bundler', 'with', { exactOptionalPropertyTypes: true }],
    [12, 'node10', 'without', {}],
    [12, 'node10', 'without', { target: ts.ScriptTarget.ES2017, lib: ['lib.es2017.d.ts'] }],
    [11, 'node16', 'with', {}],
    [11, 'bundler', 'without', { exactOptionalPropertyTypes: true }],
    [11, 'node10', 'with', { exactOptionalPropertyTypes: true }],
  ])(
    'are right and refuse what is wrong: Nest %i, %s, %s peers, %j',
    (nest, way, peers, options) => {
      const hasPeers = peers === 'with';
      const app = makeBareApp(tarball, nest, hasPeers ? optionalPeers() : []);
      expect(typeFaults(app, files(hasPeers), way, options)).toEqual([]);
    },
  );

  it('know the names of policies that an application has declared', () => {
    expect(typeFaults(makeBareApp(tarball, 12), ['declared-names'], 'node16')).toEqual([]);
  });
});

describe('a test of an app', () => {
  const platform = ['@nestjs/platform-express'];

  it('runs in Jest, as ES modules on Nest 12, and by ts-jest as CommonJS on Nest 11', async () => {
    const byModules = makeBareApp(tarball, 12, platform);
    const byRequire = makeBareApp(tarball, 11, platform);
    const swc = [transformer('@swc/jest'), SWC];
    const tsJest = [transformer('ts-jest'), { tsconfig: TSCONFIG }];
    const config = {
      rootDir: byModules,
      projects: [
        { ...PROJECT, rootDir: byModules, transform: { '\\.ts$': swc } },
        { ...PROJECT, rootDir: byRequire, transform: { '\\.ts$': tsJest } },
      ],
    };
    config.projects[0] = Object.assign(config.projects[0]!, { extensionsToTreatAsEsm: ['.ts'] });
    const file = join(byModules, 'jest.config.json');
    writeFileSync(file, JSON.stringify(config));
    const jest = join(root, 'node_modules/jest/bin/jest.js');
    const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
    const { code, output } = await runToEnd(
      process.execPath,
      [...flags, jest, '--config', file, '--runInBand'],
      { cwd: byModules },
    );
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringContaining('2 passed, 2 total') as string,
    });
  });

  it('runs in Vitest, on Nest 12 and 11', async () => {
    const [first, second] = ([12, 11] as const).map((nest) => makeBareApp(tarball, nest, platform));
    const test = { globals: true, include: ['limits.test.ts'] };
    for (const dir of [first!, second!]) {
      writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: TSCONFIG }));
    }
    const projects = [first, second].map((dir) => ({ root: dir, test: { ...test, name: dir } }));
    const file = join(first!, 'vitest.config.mjs');
    writeFileSync(file, `export default ${JSON.stringify({ test: { projects } })};`);
    const vitest = join(root, 'node_modules/vitest/vitest.mjs');
    const { code, output } = await runToEnd(
      process.execPath,
      [vitest, 'run', '--config', file, '--no-color'],
      { cwd: first! },
    );
    expect({ code, output }).toEqual({
      code: 0,
      output: expect.stringContaining('2 passed (2)') as string,
    });
  });
});

const TSCONFIG = {
  module: 'commonjs',
  target: 'es2022',
  experimentalDecorators: true,
  isolatedModules: true,
};
const PROJECT = { testMatch: ['<rootDir>/limits.test.ts'], testEnvironment: 'node' };
const SWC = {
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true },
  },
  module: { type: 'es6' },
};
const transformer = (name: string): string => join(root, 'node_modules', name);

describe('an app without ioredis', () => {
  it('limits in memory', async () => {
    const url = await serve(bareApp, ['server.mjs']);
    expect(await answersOf(url)).toEqual(['200 local', '429 local', '200 local']);
  });

  const wantRedis = `try {
    createRateLimiter({ store: { type: 'redis', url: 'redis://127.0.0.1:1' } });
  } catch (error) {
    console.log(error instanceof MissingPackageError, error.code, error.message);
  }`;
  const saysWhatToInstall =
    'true MISSING_PACKAGE the redis store needs the package "ioredis": npm install ioredis\n';

  it('is told what to install when it asks for Redis', async () => {
    const imports = `import { createRateLimiter, MissingPackageError } from 'nestjs-weir';`;
    const { stdout } = await evaluate(bareApp, imports + wantRedis);
    expect(stdout).toBe(saysWhatToInstall);
  });

  it('is told so as CommonJS as well', async () => {
    const imports = `const { createRateLimiter, MissingPackageError } = require('nestjs-weir');`;
    const { stdout } = await runToEnd(
      process.execPath,
      [OLD_REQUIRE, '--input-type=commonjs', '-e', imports + wantRedis],
      { cwd: bareOldApp },
    );
    expect(stdout).toBe(saysWhatToInstall);
  });
});

describe('an app without an optional package, or with one that is too old', () => {
  const tell = `catch (error) { console.log(error.code, error.message); }`;
  const says = (purpose: string, name: string): string =>
    `MISSING_PACKAGE ${purpose} needs the package "${name}": npm install ${name}\n`;

  it.each([
    ['imports', () => bareApp, 'module', 'await import'],
    ['requires', () => bareOldApp, 'commonjs', 'require'],
  ])('is told what to install for gRPC when it %s it', async (_, app, type, load) => {
    const code = `try { ${load}('nestjs-weir/grpc'); } ${tell}`;
    const flags = [OLD_REQUIRE, `--input-type=${type}`];
    const { stdout } = await runToEnd(process.execPath, [...flags, '-e', code], { cwd: app() });
    expect(stdout).toBe(says('nestjs-weir/grpc', '@grpc/grpc-js'));
  });

  it('is told what to install for metrics, or to install anew', async () => {
    const app = makeBareApp(tarball, 12);
    const old = join(app, 'node_modules/@opentelemetry/api');
    mkdirSync(old, { recursive: true });
    const manifest = { name: '@opentelemetry/api', version: '1.4.1', main: 'index.js' };
    writeFileSync(join(old, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(old, 'index.js'), '');
    const { stdout } = await evaluate(
      app,
      `import { NestFactory } from '@nestjs/core';
       import { RateLimitModule } from 'nestjs-weir';
       import { RateLimitOtelModule } from 'nestjs-weir/otel';
       import { RateLimitPrometheusModule } from 'nestjs-weir/prometheus';
       for (const metrics of [RateLimitPrometheusModule, RateLimitOtelModule]) {
         const module = class {};
         Reflect.defineMetadata('imports', [RateLimitModule.forRoot(), metrics.forRoot()], module);
         try {
           await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
         } ${tell}
       }
       process.exit();`,
    );
    expect(stdout).toBe(
      says('RateLimitPrometheusModule', 'prom-client') +
        'WRONG_PACKAGE RateLimitOtelModule needs @opentelemetry/api 1.9 or later, and 1.4.1 is installed: ' +
        'npm install @opentelemetry/api@latest\n',
    );
  });

  it('loads four files of code for the main entry', async () => {
    const code = `const { createRequire } = await import('node:module');
      await import('nestjs-weir');
      const { cache } = createRequire(process.cwd() + '/x.js');
      console.log(Object.keys(cache).filter((path) => path.includes('/nestjs-weir/dist')).length);`;
    expect((await evaluate(esmApp, code)).stdout).toBe('4\n');
  });
});

/** An application whose limits are tested with Fastify's `inject`, without a port and without waiting. */
const KIT = `
  require('reflect-metadata');
  const { Controller, Get, Module } = require('@nestjs/common');
  const { FastifyAdapter } = require('@nestjs/platform-fastify');
  const { Test } = require('@nestjs/testing');
  const { RateLimit, RateLimitModule } = require('nestjs-weir');
  const { ManualClock, overrideRateLimits, rateLimitMatchers } = require('nestjs-weir/testing');
  class Hello { hello() { return 'hello'; } }
  const hello = Object.getOwnPropertyDescriptor(Hello.prototype, 'hello');
  Get()(Hello.prototype, 'hello', hello);
  RateLimit('once')(Hello.prototype, 'hello', hello);
  Controller()(Hello);
  class App {}
  const store = { type: 'redis', url: 'redis://127.0.0.1:1' };
  const imports = [RateLimitModule.forRoot({ policies: { once: { rate: '1/min' } }, store })];
  Module({ imports, controllers: [Hello] })(App);
  (async () => {
    const clock = new ManualClock();
    const builder = overrideRateLimits(Test.createTestingModule({ imports: [App] }), { clock });
    const app = (await builder.compile()).createNestApplication(new FastifyAdapter());
    app.useLogger(false);
    await app.init();
    const get = async (isLimited) => {
      const response = await app.inject('/');
      const verdict = await rateLimitMatchers.toBeRateLimited(response, { policy: 'once' });
      console.log(response.statusCode, verdict.pass === isLimited);
    };
    await get(false);
    await get(true);
    clock.advance(60_000);
    await get(false);
    await app.close();
  })();
`;

function asModule(commonJs: string): string {
  return commonJs.replace(/(?:const (\{.*\}) = )?require\((.*)\);/g, (_, names, from) =>
    names === undefined ? `import ${from};` : `import ${names} from ${from};`,
  );
}

function bytesBelow(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.map((name) => statSync(join(folder, name))).filter((one) => one.isFile());
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Starts an app of test/package/apps and resolves to its address. */
async function serve(dir: string, args: readonly string[], redisUrl?: string): Promise<string> {
  const server = spawnOwned(process.execPath, args, {
    cwd: dir,
    env: { ...process.env, REDIS_URL: redisUrl },
  });
  let written = '';
  for (const stream of [server.stdout, server.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (written += text));
  }
  const port = await until(() => /^port (\d+)$/m.exec(written)?.[1], {
    timeoutMs: 20_000,
    what: `the app to listen (${args.join(' ')})`,
  }).catch((error: unknown) => {
    throw new Error(`the app did not start:\n${written}`, { cause: error });
  });
  return `http://127.0.0.1:${port}`;
}

/** The status and source of two requests for one path and one for another. */
async function answersOf(url: string, path = '/a', other = '/b'): Promise<string[]> {
  const answers: string[] = [];
  for (const each of [path, path, other]) {
    const { status, headers } = await fetch(url + each);
    expect(Number(headers.get('retry-after')) > 0).toBe(status === 429);
    answers.push(`${status} ${headers.get('x-source')}`);
  }
  return answers;
}

function evaluate(dir: string, code: string): Promise<Finished> {
  return runToEnd(process.execPath, ['--input-type=module', '-e', code], { cwd: dir });
}
