// Writes what is made of metrics and rules for operators, in ops/: the dashboard for Grafana, the rules for Prometheus.
import { mkdir, writeFile } from 'node:fs/promises';
import { ensureLibrary } from './support/compile.mjs';
import { dashboardOf } from './support/grafana.mjs';
import { ensureInstall } from './support/install.mjs';
import { prometheusRules } from './support/prometheus-rules.mjs';
import { inRoot, modules } from './support/root.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  await ensureLibrary();
  const { FAMILIES } = await import(`${modules}/observability/families.js`);
  const { checkAlerts } = await import(`${modules}/observability/alerts/rules.js`);
  await mkdir(inRoot('ops'), { recursive: true });
  // Lines show what has changed; indents would be a third of the file, which every installation has.
  const dashboard = JSON.stringify(dashboardOf(FAMILIES), null, 1).replace(/^ +/gm, '');
  await writeFile(inRoot('ops/grafana-dashboard.json'), `${dashboard}\n`);
  const rules = prometheusRules(checkAlerts().rules, FAMILIES);
  await writeFile(inRoot('ops/prometheus-rules.yml'), rules);
});
