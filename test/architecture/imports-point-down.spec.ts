import { type SourceFile, fileCycles, importsOf, wrongImports } from './import-rules.js';
import { sourcesBelow } from './sources.js';

describe('the rooms of lib', () => {
  it('import their own room and lower ones only', () => {
    expect(wrongImports(sourcesBelow('lib'))).toEqual([]);
  });

  it('have no files that import each other', () => {
    expect(fileCycles(sourcesBelow('lib'))).toEqual([]);
  });
});

describe('wrongImports', () => {
  const faultsOf = (path: string, ...imports: string[]): string[] =>
    wrongImports([
      { path, text: imports.map((from) => `import { x } from '${from}';`).join('\n') },
    ]);

  it.each([
    ['lib/common/clock.ts', './errors.js'],
    ['lib/common/ids.ts', 'node:crypto'],
    ['lib/common/clock.ts', 'node:perf_hooks'],
    ['lib/stores/redis/redis-store.ts', '../store.js'],
    ['lib/stores/redis/redis-store.ts', '../../common/clock.js'],
    ['lib/stores/redis/redis-store.ts', 'ioredis'],
    ['lib/stores/redis/scripts.ts', 'node:fs'],
    ['lib/local/lease-client.ts', '../stores/store.js'],
    ['lib/cli/simulator/engine/world.ts', '../../../limiter/quota-options.js'],
    ['lib/config/document/check.ts', '../../degradation/core/options.js'],
    ['lib/limits/rate-limit.guard.ts', '@nestjs/common'],
    ['lib/transports/http/http-reader.ts', '../../requests/reader.js'],
    ['lib/rate-limit.module.ts', './transports/http/http-reader.js'],
    ['lib/index.ts', './rate-limit.module.js'],
  ])('lets %s import %s', (path, specifier) => {
    expect(faultsOf(path, specifier)).toEqual([]);
  });

  it.each([
    ['lib/common/clock.ts', '../algorithms/token-bucket.js', 'not below'],
    ['lib/algorithms/token-bucket.ts', '../stores/store.js', 'not below'],
    ['lib/limiter/limiter.ts', '../config/schema.js', 'not below'],
    ['lib/limiter/limiter.ts', '../cli/simulator/index.js', 'not below'],
    ['lib/overload/load.ts', '../observability/metrics.js', 'not below'],
    ['lib/degradation/options.ts', '../config/schema.js', 'not below'],
    ['lib/limits/rate-limit.guard.ts', '../transports/http/http-reader.js', 'not below'],
    ['lib/local/lease-client.ts', '../index.js', 'not below'],
    ['lib/common/clock.ts', '@nestjs/common', 'neither Nest nor I/O'],
    ['lib/algorithms/token-bucket.ts', 'rxjs', 'neither Nest nor I/O'],
    ['lib/algorithms/token-bucket.ts', 'node:crypto', 'neither Nest nor I/O'],
    ['lib/local/lease-client.ts', 'ioredis', 'neither Nest nor I/O'],
    ['lib/local/lease-client.ts', 'node:net', 'neither Nest nor I/O'],
    ['lib/local/lease-client.ts', '../stores/redis/redis-store.js', 'does no I/O'],
    ['lib/index.ts', '../test/support/until.js', 'outside lib'],
    ['lib/local/lease-client.ts', '../../bench/main.js', 'outside lib'],
    ['lib/index.ts', '../sample/01-quick-start/main.js', 'outside lib'],
    ['lib/limits/rate-limit.guard.ts', 'nestjs-weir', 'by name'],
    ['lib/limits/rate-limit.guard.ts', '../helpers/x.js', 'no room'],
  ])('does not let %s import %s', (path, specifier, fault) => {
    expect(faultsOf(path, specifier)).toEqual([expect.stringContaining(fault)]);
  });

  it('wants every directory of lib to be a room', () => {
    expect(faultsOf('lib/helpers/x.ts')).toEqual([expect.stringContaining('no room')]);
  });
});

describe('fileCycles', () => {
  const file = (path: string, ...imports: string[]): SourceFile => ({
    path: `lib/${path}.ts`,
    text: imports.map((from) => `import { type X } from '${from}.js';`).join('\n'),
  });

  it('finds two files that import each other, types included', () => {
    expect(fileCycles([file('a/one', './two'), file('a/two', './one')])).toEqual([
      'lib/a/one.ts ⇄ lib/a/two.ts',
    ]);
  });

  it('finds a way back over several files and rooms, once', () => {
    const files = [
      file('a/one', '../b/two'),
      file('b/two', './three'),
      file('b/three', '../a/one'),
    ];
    expect(fileCycles(files)).toEqual(['lib/a/one.ts ⇄ lib/b/three.ts ⇄ lib/b/two.ts']);
  });

  it('tells two groups apart, and leaves out files that only lead to one', () => {
    const files = [
      ...[file('a/one', './two'), file('a/two', './one')],
      ...[file('b/one', './two', '../a/one'), file('b/two', './one')],
      file('c/top', '../a/one', '../b/one'),
    ];
    expect(fileCycles(files)).toEqual([
      'lib/a/one.ts ⇄ lib/a/two.ts',
      'lib/b/one.ts ⇄ lib/b/two.ts',
    ]);
  });

  it('finds none where all ways lead down, also by two ways to one file', () => {
    const files = [file('a/top', './left', './right'), file('a/left', './low')];
    expect(fileCycles([...files, file('a/right', './low'), file('a/low', 'node:fs')])).toEqual([]);
  });
});

describe('importsOf', () => {
  it.each([
    `import x from './a.js';`,
    `import './a.js';`,
    `import type { X } from './a.js';`,
    `import { type X } from './a.js';`,
    `export * from './a.js';`,
    `export { x } from './a.js';`,
    `const a = await import('./a.js');`,
    `let a: import('./a.js').A;`,
    `import a = require('./a.js');`,
  ])('sees %s', (text) => {
    expect(importsOf(text)).toEqual(['./a.js']);
  });

  it('does not see what only looks like an import', () => {
    expect(importsOf(`// import './a.js';\nconst text = "import './a.js'";`)).toEqual([]);
  });
});
