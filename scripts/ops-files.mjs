// Writes what is made of the metrics for operators: the dashboard for Grafana, in ops/.
import { mkdir, writeFile } from 'node:fs/promises';
import { ensureLibrary } from './support/compile.mjs';
import { dashboardOf } from './support/grafana.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const { FAMILIES } = await import('../dist/observability/families.js');
  await mkdir(inRoot('ops'), { recursive: true });
  const dashboard = JSON.stringify(dashboardOf(FAMILIES), null, 2);
  await writeFile(inRoot('ops/grafana-dashboard.json'), `${dashboard}\n`);
});
