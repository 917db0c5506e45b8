import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';

// The scripts themselves are not run here: each of them builds anew what other specs are running.
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

describe('npm scripts of the samples', () => {
  it('are one for each sample, by either of two programs; npm start runs the first', () => {
    const started = Object.entries(scripts)
      .filter(([name]) => name.startsWith('sample:'))
      .map(
        ([, command]) => /^node scripts\/(?:start|sample)\.mjs (\d\d-[\w-]+)$/.exec(command)?.[1],
      );
    const [first, ...others] = readdirSync(join(root, 'sample')).filter((name) =>
      /^\d\d-/.test(name),
    );
    expect(started.sort()).toEqual(others);
    expect([scripts.start, first]).toEqual(['node scripts/start.mjs', '01-quick-start']);
  });

  it('are all that the README and the samples tell to run', () => {
    const files = readdirSync(join(root, 'sample'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join('sample', name));
    const told = ['README.md', ...files].flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/sample:[a-z]+/g)].map(([name]) => name),
    );
    const known = Object.keys(scripts).filter((name) => name.startsWith('sample:'));
    expect([...new Set(told)].sort()).toEqual(known.sort());
  });
});
