import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { transform } from '@swc/core';
import { root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';

const COMPILER = join(root, 'node_modules/typescript-native/bin/tsc');

/** Checks codes as if each were a file of that name in the repository, where the package finds itself by name. */
export async function typeErrors(files: ReadonlyMap<string, string>): Promise<string[]> {
  mkdirSync(join(root, 'build'), { recursive: true });
  const dir = mkdtempSync(join(root, 'build', 'blocks-'));
  try {
    for (const [name, code] of files) writeFileSync(join(dir, name), code);
    const config = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { rootDir: '.', paths: {} },
      include: ['*.ts'],
    };
    writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config));
    const { output } = await runToEnd(process.execPath, [COMPILER, '--pretty', 'false'], {
      cwd: dir,
    });
    // An indented line goes on with the error above.
    return output.split(/\n(?! )/).filter((error) => error !== '');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export async function toJavaScript(code: string): Promise<string> {
  const { code: script } = await transform(code, {
    swcrc: false,
    jsc: {
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      target: 'es2022',
    },
    module: { type: 'es6' },
  });
  return script;
}
