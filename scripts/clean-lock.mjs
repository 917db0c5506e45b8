// Keeps addresses out of package-lock.json: npm ci needs neither `resolved` nor `funding`, and a
// lock written behind one registry should install behind another. `--check` only looks.
import { readFileSync, writeFileSync } from 'node:fs';
import { inRoot } from './support/root.mjs';
import { StepError, main } from './support/step.mjs';

await main(() => {
  for (const directory of ['.', 'test/nest11', 'docs/site'])
    clean(inRoot(directory, 'package-lock.json'));
});

function clean(file) {
  const text = readFileSync(file, 'utf8');
  const lock = JSON.parse(text);
  for (const entry of Object.values(lock.packages)) {
    delete entry.resolved;
    delete entry.funding;
    if (/:\/\//.test(entry.deprecated ?? '')) delete entry.deprecated;
  }
  const cleaned = `${JSON.stringify(lock, null, 2)}\n`;
  const address = /[a-z][a-z0-9+.-]*:\/\/[^\s"]+/i.exec(cleaned);
  if (address) throw new StepError(`${file} names ${address[0]} where it is needed`);
  if (!process.argv.includes('--check')) return writeFileSync(file, cleaned);
  if (cleaned !== text) {
    throw new StepError(`${file} holds addresses: run node scripts/clean-lock.mjs`);
  }
}
