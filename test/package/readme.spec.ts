import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as weir from 'nestjs-weir';
import { MemoryStoreOptions, PolicyOptions, RateLimitError, RedisStoreOptions } from 'nestjs-weir';
import ts from 'typescript';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { startRedis, stopAll, type RedisProcess } from '../support/index.js';
import { tableBelow, typescriptBlocks, type Block } from './readme.js';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
const blocks = typescriptBlocks(readme);
const options = compilerOptions();

let redis: RedisProcess;

beforeAll(async () => {
  await ensureBuilt();
  redis = await startRedis();
}, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the code in the README', () => {
  it('is there', () => {
    expect(blocks.length).toBeGreaterThan(5);
    expect(blocks.filter(({ runs }) => runs).length).toBeGreaterThan(3);
  });

  it('has the right types', () => {
    expect(typeErrors(blocks)).toEqual([]);
  });

  it.each(blocks.filter(({ runs }) => runs))('runs (line $line)', async ({ code, prints }) => {
    // From the root the package finds itself by name, as it is built.
    const { code: exitCode, ...written } = await runToEnd(
      process.execPath,
      ['--input-type=module', '-'],
      { cwd: root, env: { REDIS_URL: redis.url }, input: toJavaScript(code) },
    );
    expect({ exitCode, stdout: written.stdout, stderr: written.stderr }).toEqual({
      exitCode: 0,
      stdout: prints,
      stderr: '',
    });
  });
});

describe('the tables in the README', () => {
  it('have as many cells in each row as in the heading', () => {
    const tables = readme.match(/(^\|.*\n)+/gm) ?? [];
    expect(tables.length).toBeGreaterThan(10);
    for (const table of tables) {
      const widths = table
        .trim()
        .split('\n')
        .map((row) => row.split('|').length);
      expect(new Set(widths).size).toBe(1);
    }
  });

  it.each([
    ['Policy options', new PolicyOptions(), ['rate', 'period', 'burst', 'maxDelay', 'defaultTier']],
    ['Memory store', new MemoryStoreOptions(), []],
    ['Redis store', new RedisStoreOptions(), ['client', 'url', 'options', 'cluster']],
  ])('have every option and its default: %s', (heading, defaults, withoutDefault) => {
    const table = tableBelow(readme, heading);
    expect([...table.keys()].sort()).toEqual([...Object.keys(defaults), ...withoutDefault].sort());
    for (const [name, value] of Object.entries(defaults)) {
      expect(`${name}: ${table.get(name)?.[0]}`).toBe(`${name}: \`${literal(value)}\``);
    }
  });

  it('have every field of a decision', async () => {
    const limiter = weir.createRateLimiter({ policies: { a: { rate: 1 }, b: { rate: 1 } } });
    const one = { policy: 'a', key: 'k' };
    const decision = await limiter.tryAcquire([one, { ...one, policy: 'b' }]);
    await limiter.close();
    expect([...tableBelow(readme, 'The decision').keys()]).toEqual(Object.keys(decision));
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
      new weir.MissingPackageError('p', 'x'),
    ];
    const exported = Object.values(weir).filter(isConcreteError);
    expect(new Set(samples.map(({ name }) => name))).toEqual(
      new Set(exported.map(({ name }) => name)),
    );
    const rows = [...tableBelow(readme, 'Errors')].map(([code, cells]) => `${code} ${cells[0]}`);
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

function compilerOptions(): ts.CompilerOptions {
  const file = join(root, 'tsconfig.json');
  const { config } = ts.readConfigFile(file, (path) => ts.sys.readFile(path)) as { config: object };
  const parsed = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, root);
  return parsed.options;
}

/** Checks the blocks as if each were a file beside the README. */
function typeErrors(all: readonly Block[]): string[] {
  const codes = new Map(all.map(({ line, code }) => [join(root, `readme-line-${line}.ts`), code]));
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => codes.has(path) || fileExists(path);
  host.readFile = (path) => codes.get(path) ?? readFile(path);
  host.getSourceFile = (path, ...rest) => {
    const code = codes.get(path);
    if (code === undefined) return getSourceFile(path, ...rest);
    return ts.createSourceFile(path, code, rest[0], true);
  };
  const program = ts.createProgram([...codes.keys()], options, host);
  return [...codes.keys()].flatMap((path) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path)).map((diagnostic) => {
      const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n');
      return `${path.slice(root.length + 1)}: ${text}`;
    }),
  );
}

function toJavaScript(code: string): string {
  const esm = { ...options, module: ts.ModuleKind.ESNext, sourceMap: false, noEmit: false };
  return ts.transpileModule(code, { compilerOptions: esm }).outputText;
}
