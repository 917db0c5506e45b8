import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as weir from 'nestjs-weir';
import * as dashboard from 'nestjs-weir/dashboard';
import {
  ConfigOptions,
  HeaderOptions,
  MemoryStoreOptions,
  PolicyOptions,
  RateLimitError,
  RateLimitModuleOptions,
  RedisStoreOptions,
  RouteOptions,
} from 'nestjs-weir';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { startRedis, stopAll, withRedis, type RedisProcess } from '../support/index.js';
import { toJavaScript, typeErrors } from './markdown-code.js';
import { PAGES, readPage, tableBelow, typescriptBlocks, withoutBlocks } from './markdown.js';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, unknown>;
};

const blocks = PAGES.flatMap((page) =>
  typescriptBlocks(readPage(page)).map((block) => ({ page, ...block })),
);

/** Names of classes and types in the prose of pages: those in backticks of two words or more. */
const NAME = /(?<![\w.'"*-])[A-Z][a-z]+(?:[A-Z][a-z]+)+(?![\w-])/g;
/** Names of others, or made up for an example. */
const FOREIGN = [
  ...['AbortSignal', 'FastifyAdapter', 'HttpException', 'UseFilters', 'UseGuards'],
  ...['GqlExecutionContext', 'GrpcMethod', 'GrpcStreamCall', 'GrpcStreamMethod', 'ResolveField'],
  ...['ErrorInfo', 'QuotaFailure', 'RetryInfo', 'ConfigService'],
  ...['AppModule', 'AuthGuard', 'CatsController', 'ProductsController'],
  ...['JobsController', 'PaymentsController', 'QuotesController'],
];
const names = new Set(
  PAGES.filter((page) => !/architecture|migrating|throttler|recipes-/.test(page)).flatMap((page) =>
    [...withoutBlocks(readPage(page)).matchAll(/`[^`\n]+`/g)]
      .flatMap(([code]) => code.match(NAME) ?? [])
      .filter((name) => !FOREIGN.includes(name)),
  ),
);
/** The part of `@nestjs/config` that pages use: it is a package of the readers, not of this repository. */
const NESTJS_CONFIG = `declare module '@nestjs/config' {
  export class ConfigModule {}
  export class ConfigService {
    get<T>(name: string, otherwise: T): T;
    getOrThrow<T>(name: string): T;
  }
}`;
/** Names that an entry lacks are found by the compiler, as a file for each entry. */
const ENTRIES = Object.keys(manifest.exports).filter((entry) => !entry.endsWith('.json'));
const fileOfEntry = (entry: string): string => `names-of-${entry.replace(/\W/g, '')}.ts`;

let redis: RedisProcess;
let errors: string[];

beforeAll(async () => {
  await ensureBuilt();
  redis = await startRedis();
  const files = blocks.map(
    ({ page, line, code }) => [`${page.replace(/\W/g, '-')}-line-${line}.ts`, code] as const,
  );
  // A declaration for the whole program in one block would hold for all others.
  const declares = ([, code]: readonly [string, string]): boolean =>
    code.includes('declare module');
  errors = await typeErrors(new Map(files.filter(declares)));
  errors.push(
    ...(await typeErrors(
      new Map([
        ...files.filter((file) => !declares(file)),
        ['nestjs-config.d.ts', NESTJS_CONFIG],
        ...ENTRIES.map((entry) => {
          const from = join('nestjs-weir', entry);
          return [
            fileOfEntry(entry),
            `export type { ${[...names].join(', ')} } from '${from}';`,
          ] as const;
        }),
      ]),
    )),
  );
}, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the front page', () => {
  it('can be read in one go', () => {
    expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(350);
  });
});

describe('pictures', () => {
  const pictures = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.svg'));

  it.each(pictures)('have each colour for light and for dark: %s', (name) => {
    const picture = readPage(`docs/${name}`);
    // Pictures of the simulator bring a white ground along.
    if (picture.includes('<rect width="100%" height="100%" fill="#ffffff"/>')) return;
    const dark = /@media \(prefers-color-scheme: dark\) \{([\s\S]*?)\n {4}\}/.exec(picture)![1]!;
    const coloured = (css: string) =>
      [...css.matchAll(/([\w.-]+) \{[^}]*#/g)].map(([, selector]) => selector!).sort();
    expect(coloured(dark).length).toBeGreaterThan(5);
    expect(coloured(dark)).toEqual(coloured(picture.replace(dark, '')));
  });

  it('of the hierarchy has the figures of the quota beside it', () => {
    const picture = readPage('docs/hierarchy.svg');
    const quota = /quota: \{[\s\S]*?\n {2}\},/.exec(readPage('docs/quotas.md'))![0];
    const figures = [...quota.matchAll(/(?:capacity|guaranteed|burst): ([\d_]+)/g)];
    expect(figures).toHaveLength(5);
    for (const [, figure] of figures) {
      expect(picture).toContain(Number(figure!.replace('_', '')).toLocaleString('en'));
    }
  });
});

describe('the code in README and docs', () => {
  it('is there', () => {
    expect(blocks.length).toBeGreaterThanOrEqual(80);
    expect(blocks.filter(({ runs }) => runs).length).toBeGreaterThanOrEqual(17);
  });

  it('has the right types', () => {
    expect(errors.filter((error) => !error.startsWith('names-of-'))).toEqual([]);
  });

  it.each(blocks.filter(({ runs }) => runs))(
    'runs ($page, line $line)',
    async ({ code, prints }) => {
      // From the root the package finds itself by name, as it is built.
      const { code: exitCode, ...written } = await runToEnd(
        process.execPath,
        ['--input-type=module', '-'],
        { cwd: root, env: { REDIS_URL: redis.url }, input: await toJavaScript(code) },
      );
      expect({ exitCode, stdout: written.stdout, stderr: written.stderr }).toEqual({
        exitCode: 0,
        stdout: prints,
        stderr: '',
      });
    },
  );
});

/** Here, where `it` and `expect` are those of Vitest, as in a spec of the reader's. */
describe('the tests in README and docs', async () => {
  const tests = blocks.filter((block) => block.isTest);
  mkdirSync(join(root, 'build'), { recursive: true });
  const dir = mkdtempSync(join(root, 'build', 'tests-'));
  for (const { page, line, code } of tests) {
    const file = join(dir, `${page.replace(/\W/g, '-')}-line-${line}.ts`);
    writeFileSync(file, code);
    await import(file);
  }
  rmSync(dir, { recursive: true });

  it('are there', () => {
    expect(tests.length).toBeGreaterThanOrEqual(1);
  });
});

describe('the sizes on the page on Redis', () => {
  it('are what Redis says, to a tenth', async () => {
    const limiter = weir.createRateLimiter({
      store: { type: 'redis', url: redis.url, decisionTimeout: '60s' },
      policies: {
        bucket: { rate: '100/min', sync: 'exact' },
        // More than the few instants of a small limit.
        window: { algorithm: 'sliding-window', rate: '100/min' },
      },
    });
    const key = '203.0.113.7';
    for (const policy of ['bucket', 'window']) await limiter.tryAcquire({ policy, key });
    await limiter.close();
    const used = async (policy: string): Promise<number> =>
      withRedis(redis.port, async (client) => {
        const [name] = await client.keys(`*:${policy}:*`);
        return Number(await client.call('MEMORY', 'USAGE', name!));
      });
    const page = readPage('docs/redis.md');
    const [, bucket, window] = /(\d+) bytes for a bucket, (\d+) for a window/.exec(page)!;
    expect(Math.abs((await used('bucket')) / Number(bucket) - 1)).toBeLessThanOrEqual(0.1);
    expect(Math.abs((await used('window')) / Number(window) - 1)).toBeLessThanOrEqual(0.1);
  });
});

describe('the names in README and docs', () => {
  it('are exported by an entry', () => {
    expect(names.size).toBeGreaterThan(20);
    // Behind the name the compiler may suggest another one.
    const lackedBy = (name: string, entry: string): boolean =>
      errors.some((error) => {
        const [, lacked] = / no exported member (?:named )?'(\w+)'/.exec(error) ?? [];
        return lacked === name && error.startsWith(fileOfEntry(entry));
      });
    const lacking = [...names].filter((name) => ENTRIES.every((entry) => lackedBy(name, entry)));
    expect(lacking).toEqual([]);
  });
});

/** Options that are groups of options. */
const GROUPS = ['headers', 'grpc', 'kafka', 'websocket', 'degradation', 'config', 'monitor'];

/** A class of errors says its code so. */
const CODE = /readonly code(: string)? = '[A-Z_]+'/g;

describe('the tables in README and docs', () => {
  it('have as many cells in each row as in the heading', () => {
    const tables =
      PAGES.map(readPage)
        .join('\n')
        .match(/(^\|.*\n)+/gm) ?? [];
    expect(tables.length).toBeGreaterThan(60);
    for (const table of tables) {
      const widths = table
        .trim()
        .split('\n')
        .map((row) => row.split('|').length);
      expect(new Set(widths).size).toBe(1);
    }
  });

  it.each([
    [
      'docs/policies.md',
      'Policy options',
      new PolicyOptions(),
      ['rate', 'period', 'burst', 'maxDelay', 'defaultTier', 'passThrough'],
    ],
    ['docs/options.md', 'Memory store', new MemoryStoreOptions(), []],
    [
      'docs/options.md',
      'Redis store',
      new RedisStoreOptions(),
      ['client', 'url', 'options', 'cluster'],
    ],
    [
      'docs/decorators.md',
      'Custom keys, tiers and cost of a route',
      new RouteOptions(),
      ['name', 'tier', 'cost', 'skipIf', 'rejection'],
    ],
    ['docs/responses.md', 'Headers', new HeaderOptions(), []],
    [
      'docs/options.md',
      'Module options',
      // The defaults of what a transport is told stand where that transport is described.
      Object.fromEntries(
        Object.entries(new RateLimitModuleOptions()).filter(([name]) => !GROUPS.includes(name)),
      ),
      [
        ...[...GROUPS, 'store', 'quota', 'app', 'apply', 'user', 'rejection'],
        ...[
          'problemBase',
          'nodeId',
          'clock',
          'configVersion',
          'service',
          'overload',
          'tier',
          'alerts',
        ],
      ],
    ],
    ['docs/monitoring.md', 'Options of monitor', new weir.MonitorOptions(), ['onDenied']],
    ['docs/hot-reload.md', 'Options of config', new ConfigOptions(), ['file', 'source']],
  ])('have every option and its default: %s, %s', (page, heading, defaults, withoutDefault) => {
    const table = tableBelow(readPage(page), heading);
    expect([...table.keys()].sort()).toEqual([...Object.keys(defaults), ...withoutDefault].sort());
    for (const [name, value] of Object.entries(defaults)) {
      expect(`${name}: ${table.get(name)?.[0]}`).toBe(`${name}: \`${literal(value)}\``);
    }
  });

  it('have every field of a decision', async () => {
    const limiter = weir.createRateLimiter({ policies: { a: { rate: 1 }, b: { rate: 1 } } });
    const one = { policy: 'a', key: 'k', limit: 1 };
    const decision = await limiter.tryAcquire([one, { ...one, policy: 'b' }]);
    await limiter.close();
    expect([...tableBelow(readPage('docs/limiter.md'), 'The decision').keys()]).toEqual(
      Object.keys(decision),
    );
  });

  it('have every code that the source has, but for those of the command', () => {
    const files = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' });
    const codes = files
      .filter((file) => file.endsWith('.ts') && !file.startsWith('cli'))
      .flatMap((file) => readFileSync(join(root, 'lib', file), 'utf8').match(CODE) ?? [])
      .map((found) => found.split("'")[1]!);
    expect(codes.length).toBeGreaterThan(20);
    const table = tableBelow(readPage('docs/errors.md'), 'Errors and their codes');
    expect(codes.filter((code) => !table.has(code))).toEqual([]);
  });

  it('have every error by its code', () => {
    const samples = [
      new weir.InvalidArgumentError('field', 1, 'x'),
      new weir.UnknownOptionError('field', []),
      new weir.CostExceedsLimitError('p', 2, 1),
      new weir.UnknownPolicyError('p', []),
      new weir.UnknownAppError('a', []),
      new weir.AcquireTimeoutError('p', 1, 1),
      new weir.TooManyWaitersError('p', 1),
      new weir.LimiterClosedError(),
      new weir.StoreUnavailableError('x'),
      new weir.StoreTimeoutError(1),
      new weir.StrayReplyError('buckets', true),
      new weir.ModuleMissingError('@RateLimit'),
      new weir.OldNestError(),
      new weir.OldNodeError('v18.0.0'),
      new weir.MissingPackageError('p', 'x'),
      new weir.WrongPackageError('p', '5', '4.0.0', 'x'),
      new weir.DeadlineExceededError('r', 1, true),
      new weir.BulkheadRejectedError('r', 'full', 1, 0),
      new weir.BreakerOpenError('r', 1),
      new weir.ProtectionRejectedError('r', 'limited', 1),
      new weir.BigValueError('r', 2, 1),
      new weir.UnknownResourceError('r', []),
      new weir.ProtectionMissingError('r', 'C.m'),
      new weir.InvalidConfigError([]),
      new weir.ConfigSyntaxError('file', 'x'),
      new weir.ConfigConflictError(1, 2),
      new weir.TooManyStagedError(1, []),
      new weir.UnknownStagedError(1, []),
      new weir.ConfigRefusedError(new Error('x')),
      new weir.UnknownRevisionError(1),
      new weir.RestartNeededError('field', 1, 'x'),
      new dashboard.DashboardGuardMissingError('guard'),
      new dashboard.DashboardPathTakenError('/ops', 'C.m'),
      new dashboard.AssetsMissingError('file'),
    ];
    const exported = Object.values({ ...weir, ...dashboard }).filter(isConcreteError);
    expect(new Set(samples.map(({ name }) => name))).toEqual(
      new Set(exported.map(({ name }) => name)),
    );
    const rows = [...tableBelow(readPage('docs/errors.md'), 'Errors and their codes')].map(
      ([code, cells]) => `${code} ${cells[0]}`,
    );
    expect(rows).toEqual(samples.map((error) => `${error.code} \`${error.name}\``));
  });
});

function isConcreteError(value: unknown): value is typeof RateLimitError {
  return typeof value === 'function' && value.prototype instanceof RateLimitError;
}

/** A default as one would write it. */
function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'number' && value >= 10_000) {
    return value.toLocaleString('en').replaceAll(',', '_');
  }
  return JSON.stringify(value);
}
