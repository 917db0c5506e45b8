import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { inRoot } from './root.mjs';
import { run } from './run.mjs';
import { StepError, step } from './step.mjs';

/** Makes node_modules match package-lock.json. Needs nothing but node and npm. */
export const ensureInstall = () => installIn('.', 'dependencies');

/** The packages of an older Nest, which cannot live beside those of the newest. */
export const ensureNest11 = () => installIn('test/nest11', 'dependencies on Nest 11');

/** What builds the site of docs/; nothing else needs it. */
export const ensureSite = () => installIn('docs/site', 'dependencies of the site');

async function installIn(directory, what) {
  const lockFile = inRoot(directory, 'package-lock.json');
  const stampFile = inRoot(directory, 'node_modules', '.nestjs-weir-lock');
  const npmRecord = inRoot(directory, 'node_modules', '.package-lock.json');
  if (!existsSync(lockFile)) {
    throw new StepError(`${lockFile} is missing: restore it from version control`);
  }
  const stamp = createHash('sha256').update(readFileSync(lockFile)).digest('hex');
  if (readIfThere(stampFile) === stamp && existsSync(npmRecord)) {
    return console.log(`${what}: up to date`);
  }
  if (npmInstalledThisLock(lockFile, npmRecord)) {
    writeFileSync(stampFile, stamp);
    return console.log(`${what}: up to date`);
  }
  // --include=dev: a NODE_ENV=production of the caller must not take the tools away.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
  await step(`${what}: npm ci`, async () => {
    const { code, output } = await run('npm', args, { cwd: inRoot(directory) });
    if (code !== 0) throw new StepError(`npm ci failed:\n${output.trim()}`, code);
    writeFileSync(stampFile, stamp);
  });
}

/**
 * npm records what it put into node_modules. The record is compared by content, not by age: a
 * checkout gives the lock file a new date without changing a package.
 */
function npmInstalledThisLock(lockFile, npmRecord) {
  const wanted = JSON.parse(readFileSync(lockFile, 'utf8')).packages;
  const installed = readRecord(npmRecord);
  return (
    Object.entries(wanted).every(
      ([path, entry]) =>
        path === '' || (path in installed ? same(entry, installed[path]) : isOptional(entry)),
    ) && Object.keys(installed).every((path) => path in wanted)
  );
}

function readRecord(npmRecord) {
  try {
    return JSON.parse(readFileSync(npmRecord, 'utf8')).packages ?? {};
  } catch {
    // Missing, or left half written by an install that was cut short: nothing is installed.
    return {};
  }
}

const same = (a, b) => a.version === b.version && a.integrity === b.integrity;
const isOptional = (entry) => entry.optional === true || entry.devOptional === true;

function readIfThere(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
