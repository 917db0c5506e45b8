import { existsSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { stopAll } from '../support/processes.js';
import { PAGES } from '../package/markdown.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

describe('npm scripts of the samples', () => {
  it('are one for each sample, by one program; npm start runs the first', () => {
    const started = Object.entries(scripts)
      .filter(([name]) => name.startsWith('sample:'))
      .map(([, command]) => /^node scripts\/start\.mjs (\d\d-[\w-]+)$/.exec(command)?.[1]);
    const [first, ...others] = readdirSync(join(root, 'sample')).filter((name) =>
      /^\d\d-/.test(name),
    );
    expect(started.sort()).toEqual(others);
    expect([scripts.start, first]).toEqual(['node scripts/start.mjs', '00-tour']);
  });

  it('build nothing that is up to date, and say what they do', async () => {
    const { output, code } = await runToEnd(process.execPath, ['scripts/start.mjs'], {
      cwd: root,
      env: { PORT: 'nowhere' },
    });
    expect(output.split('\n')).toEqual([
      'dependencies: up to date',
      'build: up to date',
      'compile: up to date',
      'PORT must be a number from 0 to 65535, and is "nowhere".',
      '',
    ]);
    expect(code).toBe(1);
  });

  it('say what there is when they are asked, and start nothing', async () => {
    const { output, code } = await runToEnd(process.execPath, ['scripts/start.mjs', '--help'], {
      cwd: root,
    });
    expect(output).toContain('npm start -- --redis');
    expect(output).toContain('01-quick-start, 02-api-gateway');
    expect(code).toBe(0);
  });

  it('go by what sources hold, not by their dates', async () => {
    const source = join(root, 'sample/01-quick-start/main.ts');
    const now = new Date();
    utimesSync(source, now, now);
    const { output } = await runToEnd(process.execPath, ['scripts/ensure-built.mjs'], {
      cwd: root,
    });
    expect(output).toBe('build: up to date\ncompile: up to date\n');
  });

  it('are all that README, docs and the samples tell to run', () => {
    const files = readdirSync(join(root, 'sample'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join('sample', name));
    const told = [...PAGES, ...files].flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/sample:[a-z]+/g)].map(([name]) => name),
    );
    const known = Object.keys(scripts).filter((name) => name.startsWith('sample:'));
    expect([...new Set(told)].sort()).toEqual(known.sort());
  });
});

it('nest-cli.json names what nest build compiles: the library, by the tsconfig of the build', () => {
  const { sourceRoot, entryFile, compilerOptions } = JSON.parse(
    readFileSync(join(root, 'nest-cli.json'), 'utf8'),
  ) as { sourceRoot: string; entryFile: string; compilerOptions: Record<string, unknown> };
  expect(existsSync(join(root, sourceRoot, `${entryFile}.ts`))).toBe(true);
  expect(compilerOptions).toMatchObject({ builder: 'tsc', tsConfigPath: 'tsconfig.build.json' });
  const tsconfig = readFileSync(join(root, 'tsconfig.build.json'), 'utf8');
  expect(JSON.parse(tsconfig)).toMatchObject({ include: [sourceRoot] });
});
