// Takes the figures of docs/measured.md and docs/simulated.md: runs benchmarks and simulator, keeps what they found in
// bench/results, and writes the tables. What an argument names is taken anew, and the rest stays: `--suite memory` those suites
// alone, with the arguments of `npm run bench`; `--simulator` the simulator; `--from FILE…` runs nothing and takes what
// `npm run bench -- --json FILE` has written; `--pages` only writes the tables.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureInstall } from './support/install.mjs';
import {
  measuredPage,
  RESULTS,
  simulatedPage,
  SIMULATION,
  withResults,
} from './support/measured-page.mjs';
import { inRoot } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { main, StepError } from './support/step.mjs';

const read = async (path) => JSON.parse(await readFile(inRoot(path), 'utf8'));
/** One figure a line, so that a change shows which. */
const write = async (path, value) => {
  const text = JSON.stringify(value, null, 1).replace(
    /\{\n +"(?:case|promise|scenario)"[^{}]*\}/g,
    (row) => row.replace(/\n */g, ' '),
  );
  await writeFile(inRoot(path), `${text}\n`);
};

await main(async () => {
  await ensureInstall();
  const args = process.argv.slice(2);
  const [first, ...files] = args;
  if (first === '--from') for (const file of files) await keep(file);
  else if (first === '--simulator') await simulator();
  else if (first !== '--pages') await measure(args);
  await writePage('docs/measured.md', measuredPage, RESULTS);
  await writePage('docs/simulated.md', simulatedPage, SIMULATION);
});

async function measure(args) {
  await benchmarks(args);
  if (!args.includes('--suite')) await simulator();
}

async function writePage(page, make, results) {
  const text = make(await readFile(inRoot(page), 'utf8'), await read(results));
  await writeFile(inRoot(page), text);
  await runNode(['node_modules/oxfmt/bin/oxfmt', page]);
}

async function benchmarks(args) {
  const directory = await mkdtemp(join(tmpdir(), 'figures-'));
  const file = join(directory, 'bench.json');
  try {
    await runNode(['scripts/bench.mjs', '--json', file, ...args], { inherit: true });
    await keep(file);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** A bar that was missed is a figure as any other; a suite that broke off keeps those that it had. */
async function keep(file) {
  const taken = JSON.parse(await readFile(file, 'utf8'));
  await write(RESULTS, withResults(await read(RESULTS), taken));
  for (const failure of taken.failures) console.error(`Left as it was: ${failure}`);
}

async function simulator() {
  const { output } = await runNode(['scripts/simulate.mjs', '--json']);
  const rows = /^\[$[\s\S]*^\]$/m.exec(output)?.[0];
  if (rows === undefined) throw new StepError(output.trim());
  await write(SIMULATION, JSON.parse(rows));
}
