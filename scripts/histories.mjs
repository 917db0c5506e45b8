// Runs histories of faults by seed: how many, and the first seed.
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const args = ['scripts/run-histories.mjs', ...process.argv.slice(2)];
  const { code } = await runNode(args, { inherit: true });
  return code;
});
