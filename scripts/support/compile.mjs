import { rm } from 'node:fs/promises';
import { inRoot } from './root.mjs';
import { runNode } from './run.mjs';
import { mustPass, step } from './step.mjs';

/** The library into dist and dist-cjs. */
export const buildLibrary = () =>
  step('build', async () => mustPass(await runNode(['scripts/build.mjs'])));

/** Samples and benchmarks into build/, where plain node runs them against dist. */
export const compileRunnables = () =>
  step('compile', async () => {
    await rm(inRoot('build'), { recursive: true, force: true });
    mustPass(await runNode(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.run.json']));
  });
