// Runs the benchmarks; arguments are theirs.
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';
import { ensureRedisServer } from './support/tools.mjs';

await main(async () => {
  await ensureInstall();
  const REDIS_SERVER_BIN = ensureRedisServer();
  await ensureRunnables();
  const { code } = await runNode(['--expose-gc', 'build/bench/main.js', ...process.argv.slice(2)], {
    inherit: true,
    env: { REDIS_SERVER_BIN },
  });
  return code;
});
