// lib -> modules (by tsc) -> a few files of code (by rollup) in dist-cjs/code, and for each entry a file of a few lines
// that makes an ES module (dist) or CommonJS (dist-cjs) of them, with its types in one file. Hundreds of files took ten
// times as long to import, and the code twice, once for each form, was half of the package. What importing does not
// run is in files that are loaded when something of them is first used.
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { codeFile, commonJsEntry, MISSING_PACKAGE, moduleEntry } from './support/code-files.mjs';
import { buildDashboardPage } from './support/dashboard-page.mjs';
import { ENTRIES } from './support/entries.mjs';
import { firstModules } from './support/first-modules.mjs';
import { inRoot, modules } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { main, mustPass } from './support/step.mjs';

const dist = inRoot('dist');
const twin = inRoot('dist-cjs');

const FILES = Object.fromEntries(
  Object.keys(ENTRIES).map((name) => {
    const isFile = existsSync(inRoot('lib', `${name}.ts`));
    return [name, isFile ? `${name}.js` : `${name}/index.js`];
  }),
);
/** What only `npx weir` runs. */
const COMMAND = { cli: 'cli/run-command.js' };

/** These have most of the library in common. */
const MAIN_ENTRIES = ['index', 'config', 'degradation', 'protection'];

/** Loaded together with any file that names something of them. Of all others, each name is asked for where it is used. */
const FIRST_PARTS = ['algorithms-part', 'first-part', 'nest-part'];
/** A guard asks these for every request. */
const FIRST_ROOMS = ['common', 'requests', 'limits'];
const COMPOSITION = /\.(?:explorer|lifecycle|log|providers)\.js$/;
/** The limiter is the hot path: nothing between its own files may be looked up, so they are one, with all that they need. */
const LIMITER_ROOMS = ['algorithms', 'limiter', 'local', 'stores'];

const reached = new Map();
let first = new Set();
const entryOf = (name) => join(modules, FILES[name]);
const isPackage = (id) => !/^[./]/.test(id);

await main(async () => {
  for (const folder of [modules, dist, twin]) await rm(folder, { recursive: true, force: true });
  const args = ['-p', 'tsconfig.build.json', '--outDir', modules];
  mustPass(await runNode(['node_modules/typescript-native/bin/tsc', ...args]));
  await Promise.all([writeCode(), writeTypes(), buildDashboardPage()]);
  // The last file: scripts/support/compile.mjs looks for it.
  await writeFile(join(twin, 'package.json'), '{ "type": "commonjs" }\n');
});

async function writeCode() {
  first = await firstModules(modules, FILES.index);
  const bundle = await rollup({
    input: inModules({ ...FILES, ...COMMAND }, '.js'),
    external: isPackage,
    treeshake: { moduleSideEffects: (id) => !isPackage(id), propertyReadSideEffects: false },
    onwarn: ({ code, message }) => {
      // In what the compiler writes for decorators, where it is meant; and files that load each other when they are used.
      if (code !== 'THIS_IS_UNDEFINED' && code !== 'CIRCULAR_CHUNK') throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    format: 'es',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    manualChunks: partOf,
    minifyInternalExports: false,
    hoistTransitiveImports: false,
    generatedCode: { constBindings: true },
  });
  await bundle.close();
  await mkdir(join(twin, 'code'), { recursive: true });
  await mkdir(dist, { recursive: true });
  await writeFile(join(twin, 'code/missing-package.js'), MISSING_PACKAGE);
  const byName = new Map(output.map((chunk) => [chunk.fileName, chunk]));
  for (const { fileName, code } of output) {
    await writeFile(join(twin, 'code', fileName), await codeFile(code, laterOf(fileName)));
  }
  for (const name of Object.keys({ ...FILES, ...COMMAND })) {
    const chunk = byName.get(`${name}.js`);
    await writeFile(join(twin, `${name}.js`), commonJsEntry(name));
    if (name in COMMAND) continue;
    const packages = packagesOf(chunk, byName).filter((one) => !one.startsWith('node:'));
    await writeFile(
      join(dist, `${name}.js`),
      moduleEntry(name, packages, ENTRIES[name], chunk.exports),
    );
  }
}

/** The packages that a file of code and those that it loads ask for. */
function packagesOf(chunk, byName) {
  const files = new Set([chunk]);
  const packages = new Set();
  for (const { imports } of files) {
    for (const from of imports) {
      if (byName.has(from)) files.add(byName.get(from));
      else packages.add(from);
    }
  }
  return [...packages].sort();
}

/**
 * The files of what entries share: what importing the main entry runs, apart by whether it needs Nest; the limiter; what puts
 * the module together when it starts; and a file for each further room.
 */
function partOf(id, { getModuleInfo }) {
  const isBelow = (entries) => entries.some((name) => reach(getModuleInfo, entryOf(name)).has(id));
  if (isBelow(['algorithms'])) return 'algorithms-part';
  if (!isBelow(MAIN_ENTRIES)) return undefined;
  const path = relative(modules, id).split(sep);
  const room = path.length > 1 ? path[0] : '';
  if (id.endsWith('.schema.js')) return 'config-part';
  if (first.has(id) || FIRST_ROOMS.includes(room)) {
    const isOfNest = [...reach(getModuleInfo, id)].some((one) => one.startsWith('@nestjs/'));
    return isOfNest ? 'nest-part' : 'first-part';
  }
  if (room === 'transports' || room === '' || COMPOSITION.test(id)) return 'start-part';
  if (path[1] === 'redis') return 'redis-part';
  return LIMITER_ROOMS.includes(room) ? 'limiter-part' : `${room}-part`;
}

/** Whether a file of code loads another one only when it uses something of it. */
function laterOf(fileName) {
  const isFirst = FIRST_PARTS.some((part) => fileName === `${part}.js`);
  return (from) => {
    const part = from.replace(/^\.\/|\.js$/g, '');
    return !FIRST_PARTS.includes(part) && (isFirst || part !== 'limiter-part');
  };
}

/** A module and all that it imports, at any distance. */
function reach(getModuleInfo, id) {
  if (reached.has(id)) return reached.get(id);
  const found = new Set([id]);
  for (const one of found) for (const next of getModuleInfo(one).importedIds) found.add(next);
  reached.set(id, found);
  return found;
}

/**
 * The types stand beside the CommonJS files, and those of the ES modules are the same: a class has one type,
 * however it is imported.
 */
async function writeTypes() {
  const bundle = await rollup({
    input: inModules(FILES, '.d.ts'),
    external: isPackage,
    plugins: [
      dts(),
      { name: 'import-nest', renderChunk: importNest },
      { name: 'half-indents', renderChunk: halfIndents },
    ],
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
  for (const name of Object.keys(FILES)) {
    const types = relative(dist, join(twin, `${name}.js`));
    await writeFile(join(dist, `${name}.d.ts`), `export * from '${types}';\n`);
  }
}

/** Nest 12 is made of ES modules, which the types of CommonJS files may name only so. */
function importNest(types) {
  const imports = /^import (?:type )?(\{[^}]*\}) from '(@nestjs\/[^']*)';$/gm;
  // Imports for their effects are left over from the bundling: types have none.
  const named = types.replace(/^import '[^']*';\n/gm, '');
  return named.replace(imports, "import type $1 from '$2' with { 'resolution-mode': 'import' };");
}

/** The compiler indents by four spaces, which are a sixteenth of the types. */
function halfIndents(types) {
  return types.replace(/^(?: {4})+/gm, (indent) => ' '.repeat(indent.length / 2));
}

function inModules(entries, ext) {
  return Object.fromEntries(
    Object.entries(entries).map(([name, file]) => [name, join(modules, file.replace('.js', ext))]),
  );
}
