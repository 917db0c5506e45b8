// lib -> modules (by tsc) -> a few chunks: dist (ES modules, by esbuild) and dist-cjs (the same as CommonJS, by swc),
// with the types of each entry in one file. Hundreds of files took ten times as long to import.
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { transform } from '@swc/core';
import { build } from 'esbuild';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { commonJsEntry } from './support/commonjs-entry.mjs';
import { buildDashboardPage } from './support/dashboard-page.mjs';
import { ENTRIES } from './support/entries.mjs';
import { inRoot, modules } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { main, mustPass } from './support/step.mjs';

const dist = inRoot('dist');
const twin = inRoot('dist-cjs');

/** Each is a file of its own in dist. */
const FILES = Object.fromEntries(
  Object.keys(ENTRIES).map((name) => {
    const isFile = existsSync(inRoot('lib', `${name}.ts`));
    return [name, isFile ? `${name}.js` : `${name}/index.js`];
  }),
);
/** What only `npx weir` runs: an ES module, which nobody can import. */
const COMMAND = { cli: 'cli/run-command.js' };

await main(async () => {
  for (const folder of [modules, dist, twin]) await rm(folder, { recursive: true, force: true });
  const args = ['-p', 'tsconfig.build.json', '--outDir', modules];
  mustPass(await runNode(['node_modules/typescript/bin/tsc', ...args]));
  await Promise.all([writeCode(), writeTypes(), buildDashboardPage()]);
  // The last file: scripts/support/compile.mjs looks for it.
  await writeFile(join(twin, 'package.json'), '{ "type": "commonjs" }\n');
});

async function writeCode() {
  const { outputFiles, metafile } = await build({
    entryPoints: inModules({ ...FILES, ...COMMAND }, '.js'),
    outdir: dist,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    minifySyntax: true,
    chunkNames: 'chunks/[hash]',
    metafile: true,
    write: false,
    logLevel: 'error',
  });
  const forCommand = onlyForCommand(metafile);
  await Promise.all(
    outputFiles.flatMap(({ path, text }) => {
      const name = relative(dist, path);
      const es = write(path, text, { type: 'es6' });
      return forCommand.has(name) ? [es] : [es, writeTwin(name, text)];
    }),
  );
}

/** The chunks that no entry of the library leads to. */
function onlyForCommand({ outputs }) {
  const byName = new Map(
    Object.entries(outputs).map(([path, output]) => [relative(dist, inRoot(path)), output]),
  );
  const reached = new Set();
  const open = Object.keys(ENTRIES).map((name) => `${name}.js`);
  while (open.length > 0) {
    const name = open.pop();
    if (reached.has(name) || !byName.has(name)) continue;
    reached.add(name);
    const imported = byName.get(name).imports.filter(({ external }) => !external);
    open.push(...imported.map(({ path }) => relative(dist, inRoot(path))));
  }
  return new Set([...byName.keys()].filter((name) => !reached.has(name)));
}

async function writeTwin(name, text) {
  const isEntry = !name.startsWith('chunks/');
  // swc also rewrites import.meta.url, by which the package finds its Lua files.
  const commonjs = { strict: true, importInterop: 'swc', exportInteropAnnotation: true };
  const target = isEntry ? join('entries', name) : name;
  await write(join(twin, target), text, { type: 'commonjs', ...commonjs }, isEntry);
  if (isEntry) await writeFile(join(twin, name), commonJsEntry(basename(name, '.js')));
}

/**
 * Without comments and with short names of local variables: those of functions and classes stay, as stack traces,
 * Nest's messages, names of errors and of routes are made of them. A bundled class has the name of its variable.
 */
async function write(target, code, module, isBelow = false) {
  const text = isBelow ? code.replaceAll('"./chunks/', '"../chunks/') : code;
  const { code: small } = await transform(text, {
    filename: target,
    jsc: {
      target: 'es2022',
      parser: { syntax: 'ecmascript', importAttributes: true },
      minify: {
        compress: false,
        mangle: { keep_classnames: true, keep_fnames: true, topLevel: false },
        format: { comments: false },
      },
    },
    minify: true,
    module,
    isModule: true,
  });
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, small);
}

/**
 * The types stand beside the CommonJS files, and those of the ES modules are the same: a class has one type,
 * however it is imported.
 */
async function writeTypes() {
  const bundle = await rollup({
    input: inModules(FILES, '.d.ts'),
    external: (id) => !/^[./]/.test(id),
    plugins: [dts(), { name: 'import-nest', renderChunk: importNest }],
    // Types that exported members name and no entry exports; the types are right all the same.
    onwarn: ({ message }) => console.warn(message),
  });
  const chunkFileNames = 'chunks/[name].ts';
  await bundle.write({
    dir: twin,
    entryFileNames: '[name].d.ts',
    chunkFileNames,
    minifyInternalExports: false,
  });
  await bundle.close();
  await mkdir(dist, { recursive: true });
  for (const name of Object.keys(ENTRIES)) {
    await writeFile(join(dist, `${name}.d.ts`), `export * from '../dist-cjs/${name}.js';\n`);
  }
}

/** Nest 12 is made of ES modules, which the types of CommonJS files may name only so. */
function importNest(types) {
  const imports = /^import (?:type )?(\{[^}]*\}) from '(@nestjs\/[^']*)';$/gm;
  // Imports for their effects are left over from the bundling: types have none.
  const named = types.replace(/^import '[^']*';\n/gm, '');
  return named.replace(imports, "import type $1 from '$2' with { 'resolution-mode': 'import' };");
}

function inModules(entries, ext) {
  return Object.fromEntries(
    Object.entries(entries).map(([name, file]) => [name, join(modules, file.replace('.js', ext))]),
  );
}
