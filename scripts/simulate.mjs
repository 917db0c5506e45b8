// Runs the simulator; arguments are its own.
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const { code } = await runNode(['scripts/run-simulator.mjs', ...process.argv.slice(2)], {
    inherit: true,
  });
  return code;
});
