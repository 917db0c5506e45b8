// The whole proof: types, lint, build, tests. With arguments only vitest runs, and they are vitest's.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBrokers } from './support/brokers.mjs';
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall, ensureNest11 } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { StepError, main, mustPass, step } from './support/step.mjs';
import {
  ensureChromium,
  ensureLuacheck,
  ensurePromtool,
  ensureRedisServer,
} from './support/tools.mjs';

/** Fleets of processes under load, of which figures are checked: they have the machine to themselves, two at a time. */
const FLEETS = ['test/chaos/', 'test/config/five-processes'];

/** One more than there are cores: many tests wait for servers and processes that they have started. */
const WORKERS = Math.min(availableParallelism(), 4) + 1;

const EVERYTHING = [
  {
    name: 'tests',
    args: [`--maxWorkers=${WORKERS}`, ...FLEETS.flatMap((one) => ['--exclude', `${one}*`])],
  },
  { name: 'tests of fleets', args: ['--maxWorkers=2', ...FLEETS] },
];

const vitestArguments = process.argv.slice(2);
const everything = vitestArguments.length === 0;

await main(async () => {
  await ensureInstall();
  await ensureNest11();
  const env = await step('tools', () => ({
    REDIS_SERVER_BIN: ensureRedisServer(),
    ...(everything && {
      LUACHECK_BIN: ensureLuacheck(),
      CHROMIUM_BIN: ensureChromium(),
      PROMTOOL_BIN: ensurePromtool(),
      ...ensureBrokers(),
    }),
  }));
  if (everything) {
    await Promise.all([
      step('types', async () =>
        mustPass(await runNode(['node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.json'])),
      ),
      step('types of the page', async () =>
        mustPass(
          await runNode(['node_modules/typescript-native/bin/tsc', '-p', 'lib/dashboard/page']),
        ),
      ),
      step('lint', async () => mustPass(await runNode(['scripts/lint.mjs'], { env }))),
      ensureRunnables(),
    ]);
  }
  const dir = mkdtempSync(join(tmpdir(), 'nestjs-weir-test-'));
  try {
    const runs = everything ? EVERYTHING : [{ name: 'tests', args: vitestArguments }];
    const files = runs.map((_, index) => join(dir, `result-${index}.json`));
    const codes = [];
    for (const [index, { name, args }] of runs.entries()) {
      codes.push(await vitest(name, args, files[index], env));
    }
    const code = codes.find((one) => one !== 0) ?? 0;
    console.log(countOf(files, code));
    return code;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

async function vitest(name, vitestArgs, resultFile, env) {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${resultFile}`];
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...vitestArgs, ...reporters];
  let code = 0;
  try {
    await step(
      name,
      async () => {
        code = (await runNode(args, { inherit: true, env })).code;
        if (code !== 0) throw new StepError(`${name} failed`, code);
      },
      { speaks: true },
    );
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
  }
  return code;
}

/** The last line of the output: continuous integration reads it. */
function countOf(resultFiles, code) {
  let [passed, failed] = [0, 0];
  for (const file of resultFiles.filter(existsSync)) {
    const result = JSON.parse(readFileSync(file, 'utf8'));
    passed += result.numPassedTests;
    // A file that does not even load has no tests to count.
    failed += Math.max(result.numFailedTests, result.testResults.filter(isFailed).length);
  }
  // A run also fails for reasons that are no test's, which must not read as a success.
  return `${passed} passed, ${Math.max(failed, code === 0 ? 0 : 1)} failed`;
}

function isFailed({ status }) {
  return status === 'failed';
}
