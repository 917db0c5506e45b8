// Runs the benchmarks; arguments are theirs.
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';
import { ensureChromium, ensureRedisServer } from './support/tools.mjs';

await main(async () => {
  await ensureInstall();
  const args = process.argv.slice(2);
  const env = { REDIS_SERVER_BIN: ensureRedisServer() };
  // One suite has a page to look at.
  if (!args.includes('--suite') || args.includes('dashboard')) env.CHROMIUM_BIN = ensureChromium();
  await ensureRunnables();
  const { code } = await runNode(['--expose-gc', 'build/bench/main.js', ...args], {
    inherit: true,
    env,
  });
  return code;
});
