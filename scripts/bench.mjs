// Runs the benchmarks; arguments are theirs.
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main, StepError } from './support/step.mjs';
import { ensureChromium, ensureRedisServer, ensureValgrind } from './support/tools.mjs';

await main(async () => {
  await ensureInstall();
  const args = process.argv.slice(2);
  const env = { REDIS_SERVER_BIN: ensureRedisServer() };
  const isAsked = (suite) => !args.includes('--suite') || args.includes(suite);
  if (isAsked('dashboard')) env.CHROMIUM_BIN = ensureChromium();
  if (isAsked('http') || isAsked('degradation')) env.VALGRIND_BIN = valgrindIfAny();
  await ensureRunnables();
  const { code } = await runNode(['--expose-gc', 'build/bench/main.js', ...args], {
    inherit: true,
    env,
  });
  return code;
});

/** There is none for some machines; the suites measure CPU time then. */
function valgrindIfAny() {
  try {
    return ensureValgrind();
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    console.error(error.message);
    return undefined;
  }
}
