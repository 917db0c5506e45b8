// Builds the library and runs the first sample against it.
import { buildLibrary, compileRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await buildLibrary();
  await compileRunnables();
  const { code } = await runNode(
    ['--enable-source-maps', 'build/sample/01-quick-start/main.js', ...process.argv.slice(2)],
    { inherit: true },
  );
  return code;
});
