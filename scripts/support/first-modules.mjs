import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { transform } from '@swc/core';

/**
 * The modules that importing an entry runs; every other one can wait until something of it is used. It is found out by
 * doing so: as CommonJS that loads each module at the first use of one of its names, the entry is loaded and all its
 * exports are looked at.
 *
 * @param {string} modules The folder of all modules
 * @param {string} entry The file of the entry in it
 * @returns {Promise<Set<string>>} The files of those modules
 */
export async function firstModules(modules, entry) {
  const lazy = join(modules, '.lazy');
  await rm(lazy, { recursive: true, force: true });
  const files = (await readdir(modules, { recursive: true })).filter((file) =>
    file.endsWith('.js'),
  );
  await Promise.all(files.map((file) => writeLazy(join(modules, file), join(lazy, file))));
  await writeFile(join(lazy, 'package.json'), '{ "type": "commonjs" }\n');
  const require = createRequire(join(lazy, entry));
  const found = require(`./${entry}`);
  for (const name of Object.keys(found)) void found[name];
  const loaded = Object.keys(require.cache).filter((file) => file.startsWith(lazy));
  await rm(lazy, { recursive: true, force: true });
  return new Set(loaded.map((file) => join(modules, relative(lazy, file))));
}

async function writeLazy(source, target) {
  const text = await readFile(source, 'utf8');
  const relatives = [...text.matchAll(/ from '(\.[^']*)'/g)].map(([, from]) => from);
  const { code } = await transform(text, {
    jsc: { target: 'es2022', parser: { syntax: 'ecmascript' } },
    module: { type: 'commonjs', lazy: relatives, importInterop: 'swc' },
  });
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, code);
}
