import { parseArgs } from 'node:util';
import { SCENARIOS } from '../scenarios/index.js';
import { LOAD_SHAPES } from '../scenarios/random-quota.js';
import { type Scenario } from '../scenarios/scenario.js';
import { UsageError } from './usage-error.js';

export interface SimulateArguments {
  readonly scenarios: readonly Scenario[];
  readonly configFile: string | undefined;
  readonly nodes: number | undefined;
  readonly seed: number;
  /** So many quotas drawn at random, instead of one. */
  readonly random: number | undefined;
  readonly jsonFile: string | undefined;
  readonly svgDirectory: string | undefined;
  readonly help: boolean;
}

const DEFAULT_SEED = 7;
const MOST_NODES = 1000;
const MOST_RANDOM = 100_000;

/** A line for each. */
export function scenarioList(): string[] {
  const width = Math.max(...SCENARIOS.map(({ name }) => name.length)) + 2;
  return ['Scenarios', ...SCENARIOS.map(({ name, about }) => `  ${name.padEnd(width)}${about}`)];
}

export function usage(): string {
  return [
    'Runs the quota on virtual time through load shapes and faults, and checks what it promises.',
    '',
    'Options',
    '  --scenario NAME  run this one only; may be given more than once',
    "  --config FILE    run on the quota options of this JSON file: the limiter's `quota`",
    `  --nodes N        processes, up to ${MOST_NODES}; without it each scenario has its own number`,
    `  --seed N         another course of events (default ${DEFAULT_SEED}); the same number, the same course`,
    '  --random N       N quotas drawn at random from the seed on, each through one scenario; see the README',
    '  --json FILE      also write all figures to FILE',
    '  --svg DIR        also draw each scenario, as DIR/<scenario>.svg',
    '  --help           show this and stop',
    '',
    ...scenarioList(),
  ].join('\n');
}

/** What is asked for, as it was written. */
export interface SimulateValues {
  readonly scenario?: readonly string[] | undefined;
  readonly config?: string | undefined;
  readonly nodes?: string | undefined;
  readonly seed?: string | undefined;
  readonly random?: string | undefined;
  readonly json?: string | undefined;
  readonly svg?: string | undefined;
  readonly help?: boolean | undefined;
}

export const parseArguments = (args: readonly string[]): SimulateArguments => askedFor(read(args));

export function askedFor(values: SimulateValues): SimulateArguments {
  return {
    scenarios:
      values.scenario?.map(find) ?? (values.random === undefined ? SCENARIOS : LOAD_SHAPES),
    configFile: values.config,
    nodes: values.nodes === undefined ? undefined : whole('nodes', values.nodes, 1, MOST_NODES),
    seed: values.seed === undefined ? DEFAULT_SEED : whole('seed', values.seed, 0, 1e9),
    random:
      values.random === undefined ? undefined : whole('random', values.random, 1, MOST_RANDOM),
    jsonFile: values.json,
    svgDirectory: values.svg,
    help: values.help ?? false,
  };
}

function read(args: readonly string[]): SimulateValues {
  try {
    return parseArgs({
      args: [...args],
      options: {
        scenario: { type: 'string', multiple: true },
        config: { type: 'string' },
        nodes: { type: 'string' },
        seed: { type: 'string' },
        random: { type: 'string' },
        json: { type: 'string' },
        svg: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage()}`);
  }
}

function find(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario !== undefined) return scenario;
  const names = SCENARIOS.map((one) => one.name).join(', ');
  throw new UsageError(`There is no scenario '${name}'. There are: ${names}.`);
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = text.trim() === '' ? NaN : Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new UsageError(
    `--${option} must be a whole number from ${least} to ${most}; got '${text}'.`,
  );
}
