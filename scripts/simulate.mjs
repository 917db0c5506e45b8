// `weir simulate` of this clone; arguments are its own.
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const args = ['bin/weir.mjs', 'simulate', ...process.argv.slice(2)];
  const { code } = await runNode(args, { inherit: true });
  return code;
});
