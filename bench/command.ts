import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { suites } from './suites/index.js';
import { type BenchArguments, parseArguments, UsageError } from './support/arguments.js';
import { printVerdict, runSuites } from './support/run-suites.js';

/** What `npm run bench` does; returns the exit code. */
export async function runCommand(args: readonly string[]): Promise<number> {
  let asked: BenchArguments;
  try {
    asked = parseArguments(args, suites);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    return 1;
  }
  if (asked.list) {
    for (const suite of suites) console.log(`${suite.name.padEnd(12)}${suite.about}`);
    return 0;
  }
  const result = await runSuites(asked.suites, asked.rounds);
  if (asked.jsonFile !== undefined) {
    await mkdir(dirname(asked.jsonFile), { recursive: true });
    await writeFile(asked.jsonFile, `${JSON.stringify(result.rows, null, 2)}\n`);
  }
  return printVerdict(result);
}
