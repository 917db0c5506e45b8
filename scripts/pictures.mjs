// Draws the pictures of docs/ that show what the library does, by the library itself.
import { writeFile } from 'node:fs/promises';
import { ensureLibrary } from './support/compile.mjs';
import { dashboardOf } from './support/grafana.mjs';
import { ensureInstall } from './support/install.mjs';
import { panelPictures } from './support/panels/pictures.mjs';
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
  const panels = await panelPictures(await watchedParts(), await dashboard());
  for (const [row, picture] of Object.entries(panels)) pictures[`grafana-${row}`] = picture;
  for (const [name, picture] of Object.entries(pictures)) {
    await writeFile(inRoot(`docs/${name}.svg`), picture);
  }
});

async function dashboard() {
  const { FAMILIES } = await import(`${modules}/observability/families.js`);
  return dashboardOf(FAMILIES);
}

/** The library's own cells and monitor, which the panels are drawn of. */
async function watchedParts() {
  const files = [
    ...['algorithms/quota/quota-limits', 'algorithms/quota/weighted-share', 'common/histogram'],
    ...['degradation/core/fallback-chain', 'observability/alerts/alerting'],
    ...['observability/fleet/fleet', 'observability/monitor', 'observability/monitor-options'],
    ...['observability/sources', 'protection/resource-stats', 'requests/request-counts'],
    ...['stores/memory/memory-board', 'stores/redis/wire', 'testing/manual-clock'],
  ];
  const all = await Promise.all(files.map((file) => import(`${modules}/${file}.js`)));
  return Object.assign({}, ...all);
}
