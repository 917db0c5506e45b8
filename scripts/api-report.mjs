// Writes the report of the public API, and the entries into package.json. A change of either is seen in review, and by
// a test if it was not meant.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { apiReport } from './support/api-report.mjs';
import { ensureLibrary } from './support/compile.mjs';
import { ENTRIES, entryFields } from './support/entries.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { main } from './support/step.mjs';

await main(async () => {
  await ensureInstall();
  const manifest = JSON.parse(await readFile(inRoot('package.json'), 'utf8'));
  const text = JSON.stringify({ ...manifest, ...entryFields() }, null, 2);
  await writeFile(inRoot('package.json'), `${text}\n`);
  await ensureLibrary();
  const report = apiReport(inRoot('dist-cjs'), Object.keys(ENTRIES));
  await mkdir(inRoot('etc'), { recursive: true });
  await writeFile(inRoot('etc/api-report.txt'), report.text);
  for (const one of report.hidden) console.warn(`named by the public API, not exported: ${one}`);
});
