// lib -> dist (ES modules, by tsc) and dist-cjs (the same modules as CommonJS, by swc).
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { transformFile } from '@swc/core';
import { inRoot } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { main, mustPass } from './support/step.mjs';

const dist = inRoot('dist');
const twin = inRoot('dist-cjs');

await main(async () => {
  await rm(dist, { recursive: true, force: true });
  await rm(twin, { recursive: true, force: true });
  mustPass(await runNode(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json']));
  const entries = await readdir(dist, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  await Promise.all(files.map(({ parentPath, name }) => writeTwin(join(parentPath, name))));
  await writeFile(join(twin, 'package.json'), '{ "type": "commonjs" }\n');
});

async function writeTwin(file) {
  const target = join(twin, relative(dist, file));
  await mkdir(dirname(target), { recursive: true });
  if (file.endsWith('.d.ts')) return writeTypes(file, target);
  if (!file.endsWith('.js')) return;
  // swc also rewrites import.meta.url, by which the package finds its Lua files.
  const commonjs = { strict: true, importInterop: 'swc', exportInteropAnnotation: true };
  await write(target, file, { type: 'commonjs', ...commonjs });
  await write(file, file, { type: 'es6' });
}

/** Applications without ioredis have types, too: what they do not have is `any`. */
async function writeTypes(file, target) {
  const types = await readFile(file, 'utf8');
  const lenient = types.replace(/^(?=import .* from 'ioredis';$)/gm, '// @ts-ignore\n');
  if (lenient !== types) await writeFile(file, lenient);
  await writeFile(target, lenient);
}

/** Without comments: those for users stand in the types, and two more copies are a tenth of the package. */
async function write(target, source, module) {
  const { code, map } = await transformFile(source, {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'ecmascript', importAttributes: true },
      minify: { compress: false, mangle: false, format: { comments: false } },
    },
    module,
    inputSourceMap: true,
    sourceMaps: true,
  });
  await writeFile(target, code);
  await writeFile(`${target}.map`, map);
}
