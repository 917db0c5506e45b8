import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { inRoot, root, toolCache } from './root.mjs';
import { runNode } from './run.mjs';
import { mustPass, step } from './step.mjs';

/** What the outputs are made of. Versions of the compilers are in the lock file. */
const COMMON = ['package-lock.json', 'tsconfig.json'];
const LIBRARY = {
  name: 'library',
  sources: [
    'lib',
    'scripts/build.mjs',
    'scripts/support/code-files.mjs',
    'scripts/support/dashboard-page.mjs',
    'scripts/support/entries.mjs',
    'scripts/support/first-modules.mjs',
    'package.json',
    'tsconfig.build.json',
    ...COMMON,
  ],
  // The last file that its build writes.
  output: 'dist-cjs/package.json',
};
const RUNNABLES = {
  name: 'runnables',
  sources: [
    // Its types: they are checked against, and metadata of decorators is made of them.
    'dist',
    ...JSON.parse(withoutComments(readFileSync(inRoot('tsconfig.run.json'), 'utf8'))).include,
    // What those import.
    'test/setup',
    'test/support',
    'tsconfig.run.json',
    ...COMMON,
  ],
  output: 'build/sample/01-quick-start/main.js',
};

function withoutComments(json) {
  return json.replace(/^\s*\/\/.*$/gm, '');
}

/** The library into dist and dist-cjs, unless they match their sources. */
export const ensureLibrary = () => oneAtATime(libraryUpToDate);

/** That, and samples, benchmarks and processes of tests into build/, where plain node runs them against dist. */
export const ensureRunnables = () =>
  oneAtATime(async () => {
    await libraryUpToDate();
    await unlessUpToDate(RUNNABLES, 'compile', async () => {
      rmSync(inRoot('build'), { recursive: true, force: true });
      mustPass(
        await runNode(['node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.run.json']),
      );
    });
  });

const libraryUpToDate = () =>
  unlessUpToDate(LIBRARY, 'build', async () => mustPass(await runNode(['scripts/build.mjs'])));

async function unlessUpToDate({ name, sources, output }, title, work) {
  // Taken before the work: what is changed during it is not in its output.
  const wanted = digestOf(sources);
  const stamp = join(toolCache, `${name}.built`);
  const isThere = existsSync(inRoot(output)) && existsSync(stamp);
  if (isThere && readFileSync(stamp, 'utf8') === wanted) return console.log(`${title}: up to date`);
  rmSync(stamp, { force: true });
  await step(title, work);
  // By renaming: node_modules of another checkout may share the file.
  writeFileSync(`${stamp}.new`, wanted);
  renameSync(`${stamp}.new`, stamp);
}

/** By content, not by age: a checkout gives files a new date without changing them. */
function digestOf(sources) {
  const hash = createHash('sha256');
  for (const file of sources.flatMap(filesOf)) {
    hash.update(relative(root, file)).update('\0').update(readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
}

/** Files below a folder that a compiler reads. */
function filesOf(source) {
  const path = inRoot(source);
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true })
    .filter((name) => /\.(tsx?|css|html|svg)$/.test(name) && !name.endsWith('.spec.ts'))
    .sort()
    .map((name) => join(path, name));
}

const lock = join(toolCache, 'build.lock');
/** No build takes so long: the process that held the lock was killed. */
const LONGEST_BUILD_MS = 300_000;

/** Specs run side by side, and all of them may find the same thing missing. */
async function oneAtATime(work) {
  mkdirSync(toolCache, { recursive: true });
  while (!tryLock()) await pause(50);
  try {
    return await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryLock() {
  try {
    mkdirSync(lock);
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const heldMs = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Infinity);
  if (heldMs > LONGEST_BUILD_MS) rmSync(lock, { recursive: true, force: true });
  return false;
}
