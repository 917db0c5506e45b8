// Draws the pictures of docs/ that show what the library does, by the library itself.
import { writeFile } from 'node:fs/promises';
import { ensureLibrary } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import * as draw from './support/pictures.mjs';
import { inRoot, modules } from './support/root.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const algorithms = await import(`${modules}/algorithms.js`);
  const machine = await import(`${modules}/degradation/core/recovery-reducer.js`);
  const { checkRecovery, DegradationOptions } = await import(
    `${modules}/degradation/core/options.js`
  );
  const { RedisStoreOptions } = await import(`${modules}/limiter/options.js`);
  const { ClusterOptions, LocalOptions } = await import(`${modules}/limiter/quota-options.js`);
  const { quotaWeight } = await import(`${modules}/algorithms/quota/quota-limits.js`);
  const { OverloadOptions } = await import(`${modules}/overload/settings.js`);
  const defaults = {
    ...{ store: new RedisStoreOptions(), degradation: new DegradationOptions() },
    ...{ cluster: new ClusterOptions(), local: new LocalOptions() },
    ...{ overload: new OverloadOptions(), weights: [0, 1, 2, 3].map(quotaWeight) },
  };
  const rules = { ...checkRecovery({}, 'recovery'), jitter: () => 1 };
  const pictures = {
    algorithms: draw.algorithmsPicture(algorithms),
    recovery: draw.recoveryPicture(machine, rules),
    request: draw.requestPicture(defaults),
    hierarchy: draw.hierarchyPicture(defaults),
    overload: draw.overloadPicture(defaults),
  };
  for (const [name, picture] of Object.entries(pictures)) {
    await writeFile(inRoot(`docs/${name}.svg`), picture);
  }
});
