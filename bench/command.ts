import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import { suites } from './suites/index.js';
import { type BenchArguments, parseArguments, UsageError } from './support/arguments.js';
import { printVerdict, runSuites } from './support/run-suites.js';

/** The command `npm run bench`; returns the exit code. */
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
    await writeFile(asked.jsonFile, `${JSON.stringify({ ...here(), ...result }, null, 2)}\n`);
  }
  return printVerdict(result);
}

/** The machine and the day, without which figures say nothing. */
function here(): Record<'takenOn' | 'node' | 'cpus', string> {
  const all = cpus();
  return {
    takenOn: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    cpus: `${all.length} × ${all[0]?.model.trim() ?? 'unknown'}`,
  };
}
