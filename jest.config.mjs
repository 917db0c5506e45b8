/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.spec.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  // Sources import './x.js', as Node wants it; there is only x.ts before a build.
  moduleNameMapper: {
    '^(\\.{1,2}/.*)\\.js$': '$1',
    '^nestjs-weir$': '<rootDir>/lib/index.ts',
    // A file of that name goes before a folder.
    '^nestjs-weir/(.*)$': '<rootDir>/lib/$1',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          keepClassNames: true,
          parser: { syntax: 'typescript', decorators: true },
          transform: {
            legacyDecorator: true,
            decoratorMetadata: true,
            useDefineForClassFields: false,
          },
        },
        module: { type: 'es6' },
        sourceMaps: 'inline',
      },
    ],
  },
  setupFiles: ['reflect-metadata'],
  testSequencer: '<rootDir>/test/setup/longest-first.cjs',
  globalSetup: '<rootDir>/test/setup/global-setup.mjs',
  // Ends what hangs, and judges nothing: a busy machine takes its time to start servers and processes.
  testTimeout: 300_000,
  coverageProvider: 'v8',
  collectCoverageFrom: ['lib/**/*.ts'],
  // VM modules are not collected between suites: 60 suites in one worker grew to 1.4 GB.
  workerIdleMemoryLimit: '512MB',
};
