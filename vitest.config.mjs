import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/setup/longest-first.mjs';

export default defineConfig({
  test: {
    include: ['test/**/*.spec.ts'],
    exclude: ['**/node_modules/**'],
    globals: true,
    setupFiles: ['reflect-metadata'],
    globalSetup: ['test/setup/global-setup.mjs'],
    // Node itself imports sources and specs, and each worker imports a module once: to give each of 300 specs its own
    // copy of Nest took a third of the time.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    pool: 'forks',
    isolate: false,
    execArgv: [
      '--import',
      new URL('test/setup/typescript.mjs', import.meta.url).href,
      '--expose-gc',
    ],
    sequence: { hooks: 'list', sequencer: LongestFirst },
    // Ends what hangs, and judges nothing: a busy machine takes its time to start servers and processes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    disableConsoleIntercept: true,
  },
});
