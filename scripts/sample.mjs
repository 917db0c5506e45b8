// Builds the library and runs the sample whose folder is named first.
import { existsSync } from 'node:fs';
import { buildLibrary, compileRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { StepError, main } from './support/step.mjs';

const [name = '', ...rest] = process.argv.slice(2);

await main(async () => {
  if (!existsSync(inRoot('sample', name, 'main.ts'))) {
    throw new StepError(`there is no sample/${name}/main.ts: name a folder of sample`);
  }
  await ensureInstall();
  await buildLibrary();
  await compileRunnables();
  const program = `build/sample/${name}/main.js`;
  const { code } = await runNode(['--enable-source-maps', program, ...rest], { inherit: true });
  return code;
});
