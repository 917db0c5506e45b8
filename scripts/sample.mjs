// Builds the library and runs a sample against it: node scripts/sample.mjs 03-grpc
import { buildLibrary, compileRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { runNode } from './support/run.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  const [sample, ...args] = process.argv.slice(2);
  await ensureInstall();
  await buildLibrary();
  await compileRunnables();
  const file = `build/sample/${sample}/main.js`;
  const { code } = await runNode(['--enable-source-maps', file, ...args], { inherit: true });
  return code;
});
