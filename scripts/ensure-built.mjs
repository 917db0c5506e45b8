// For specs that run what users run: builds dist and build/ where they are missing or out of date.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { buildLibrary, compileRunnables } from './support/compile.mjs';
import { inRoot, toolCache } from './support/root.mjs';
import { main } from './support/step.mjs';

const lock = join(toolCache, 'build.lock');
/** No build takes so long: whoever held the lock was killed. */
const LONGEST_BUILD_MS = 120_000;

await main(() =>
  oneAtATime(async () => {
    // The last file that a build writes tells when it was done.
    if (isStale('dist-cjs/package.json', ['lib', 'scripts/build.mjs', 'tsconfig.build.json'])) {
      await buildLibrary();
    }
    const runnables = [
      'sample',
      'test/chaos/process',
      'test/config/process',
      'test/support/nest/grpc-app',
      'test/transports/long-questions',
      'test/e2e/app',
      'tsconfig.run.json',
    ];
    if (isStale('build/sample/01-quick-start/main.js', runnables)) {
      await compileRunnables();
    }
  }),
);

/** Specs run side by side, and all of them may find the same thing missing. */
async function oneAtATime(work) {
  mkdirSync(toolCache, { recursive: true });
  while (!tryLock()) await pause(50);
  try {
    await work();
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
  if (Date.now() - changedMs(lock) > LONGEST_BUILD_MS)
    rmSync(lock, { recursive: true, force: true });
  return false;
}

function isStale(output, sources) {
  const builtMs = changedMs(inRoot(output));
  return sources.flatMap(filesOf).some((file) => changedMs(file) > builtMs);
}

function filesOf(source) {
  const path = inRoot(source);
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true }).map((name) => join(path, name));
}

/** When it was changed last; long ago if it is not there. */
function changedMs(path) {
  return existsSync(path) ? statSync(path).mtimeMs : -Infinity;
}
