// Draws the pictures of docs/ that show what the library does, by the library itself.
import { writeFile } from 'node:fs/promises';
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { algorithmsPicture, recoveryPicture } from './support/pictures.mjs';
import { inRoot, modules } from './support/root.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const algorithms = await import(`${modules}/algorithms.js`);
  const machine = await import(`${modules}/degradation/core/recovery-reducer.js`);
  const { checkRecovery } = await import(`${modules}/degradation/core/options.js`);
  const rules = { ...checkRecovery({}, 'recovery'), jitter: () => 1 };
  await writeFile(inRoot('docs/algorithms.svg'), algorithmsPicture(algorithms));
  await writeFile(inRoot('docs/recovery.svg'), recoveryPicture(machine, rules));
});
