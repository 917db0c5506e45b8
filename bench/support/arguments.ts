import { parseArgs } from 'node:util';
import { type Suite } from './suite.js';

export interface BenchArguments {
  readonly suites: readonly Suite[];
  readonly jsonFile: string | undefined;
  readonly rounds: number;
  readonly list: boolean;
}

/** A mistake in the command line: told without a stack, as the code is not at fault. */
export class UsageError extends Error {}

const DEFAULT_ROUNDS = 7;
const LEAST_ROUNDS = 5;

export const USAGE = `Usage: npm run bench -- [options]
  --suite NAME   run this suite only; may be given more than once
  --rounds N     measure each contender N times (default ${DEFAULT_ROUNDS}, at least ${LEAST_ROUNDS})
  --json FILE    also write all figures to FILE
  --list         name the suites and stop`;

export function parseArguments(args: readonly string[], known: readonly Suite[]): BenchArguments {
  const values = read(args);
  return {
    suites: values.suite === undefined ? known : values.suite.map((name) => find(name, known)),
    jsonFile: values.json,
    rounds: roundsOf(values.rounds),
    list: values.list ?? false,
  };
}

function read(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        suite: { type: 'string', multiple: true },
        json: { type: 'string' },
        rounds: { type: 'string' },
        list: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
  }
}

function find(name: string, known: readonly Suite[]): Suite {
  const suite = known.find((one) => one.name === name);
  if (suite !== undefined) return suite;
  const names = known.map((one) => one.name).join(', ');
  throw new UsageError(`There is no suite '${name}'. Known suites: ${names}.`);
}

function roundsOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_ROUNDS;
  const rounds = Number(text);
  if (Number.isInteger(rounds) && rounds >= LEAST_ROUNDS) return rounds;
  throw new UsageError(`--rounds must be a whole number, at least ${LEAST_ROUNDS}; got '${text}'.`);
}
