// Keeps addresses out of package-lock.json: npm ci needs neither `resolved` nor `funding`, and a
// lock written behind one registry should install behind another. `--check` only looks.
import { readFileSync, writeFileSync } from 'node:fs';
import { inRoot } from './support/root.mjs';
import { StepError, main } from './support/step.mjs';

await main(() => {
  const file = inRoot('package-lock.json');
  const text = readFileSync(file, 'utf8');
  const lock = JSON.parse(text);
  for (const entry of Object.values(lock.packages)) {
    delete entry.resolved;
    delete entry.funding;
    if (/:\/\//.test(entry.deprecated ?? '')) delete entry.deprecated;
  }
  const clean = `${JSON.stringify(lock, null, 2)}\n`;
  const address = /[a-z][a-z0-9+.-]*:\/\/[^\s"]+/i.exec(clean);
  if (address) throw new StepError(`package-lock.json names ${address[0]} where it is needed`);
  if (!process.argv.includes('--check')) return writeFileSync(file, clean);
  if (clean !== text) {
    throw new StepError('package-lock.json holds addresses: run node scripts/clean-lock.mjs');
  }
});
