// The whole proof: types, lint, build, tests. With arguments only jest runs, and they are jest's.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBrokers } from './support/brokers.mjs';
import { buildLibrary, compileRunnables } from './support/compile.mjs';
import { ensureInstall, ensureNest11 } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { StepError, main, mustPass, step } from './support/step.mjs';
import { ensureLuacheck, ensureRedisServer } from './support/tools.mjs';

const jestArguments = process.argv.slice(2);
const everything = jestArguments.length === 0;

await main(async () => {
  await ensureInstall();
  await ensureNest11();
  const env = await step('tools', () => ({
    REDIS_SERVER_BIN: ensureRedisServer(),
    ...(everything && { LUACHECK_BIN: ensureLuacheck(), ...ensureBrokers() }),
  }));
  if (everything) {
    await step('types', async () =>
      mustPass(await runNode(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'])),
    );
    await step('lint', async () => mustPass(await runNode(['scripts/lint.mjs'], { env })));
    await buildLibrary();
    await compileRunnables();
  }
  const dir = mkdtempSync(join(tmpdir(), 'nestjs-weir-test-'));
  try {
    return await jest(join(dir, 'result.json'), env);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

async function jest(resultFile, env) {
  const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const result = ['--json', `--outputFile=${resultFile}`];
  const args = [...flags, 'node_modules/jest/bin/jest.js', ...jestArguments, ...result];
  let code = 0;
  try {
    await step('jest', async () => {
      code = (await runNode(args, { inherit: true, env })).code;
      if (code !== 0) throw new StepError('jest failed', code);
    });
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
  }
  console.log(countOf(resultFile, code));
  return code;
}

/** The last line of the output: continuous integration reads it. */
function countOf(resultFile, code) {
  const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites } = existsSync(resultFile)
    ? JSON.parse(readFileSync(resultFile, 'utf8'))
    : { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 0 };
  // A suite that does not even load has no tests to count, and jest fails for reasons that are no
  // test's; neither may read as a success.
  const failed = Math.max(numFailedTests + numRuntimeErrorTestSuites, code === 0 ? 0 : 1);
  return `${numPassedTests} passed, ${failed} failed`;
}
