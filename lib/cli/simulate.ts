import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { effective } from '../config/document/effective.js';
import { checkDocument } from '../config/schema/check.js';
import { limitsOf } from '../config/schema/limits-of.js';
import { checkQuota, type QuotaSettings } from '../limiter/quota-options.js';
import { readArguments, wholeOption, FLAG, TEXT } from './arguments.js';
import {
  asJson,
  CommandFailedError,
  DONE,
  FAILED,
  UsageError,
  type Command,
  type Output,
} from './command.js';
import { readDocument } from './documents.js';
import { inShort, type FigureRow } from './simulator/report/findings.js';
import { toSvg } from './simulator/report/svg.js';
import { formatTable } from './simulator/report/table.js';
import { SCENARIOS } from './simulator/scenarios/index.js';
import { LOAD_SHAPES, runOnRandomQuota } from './simulator/scenarios/random-quota.js';
import { type Scenario, type Setting } from './simulator/scenarios/scenario.js';

const DEFAULT_SEED = 7;
const MOST_SEED = 1e9;
const MOST_NODES = 1000;
const MOST_RANDOM = 100_000;

/** Also `npm run simulate` in a clone of the repository. */
export const simulate: Command = {
  name: 'simulate',
  takes: '[FILE]',
  about: 'run the quota of a file on virtual time, through load shapes and faults',
  options: [
    '--scenario NAME   run this one only; may be given more than once',
    `--nodes N         processes, up to ${MOST_NODES}; without it each scenario has its own number`,
    `--seed N          another course of events (default ${DEFAULT_SEED}); the same number, the same course`,
    '--random N        N quotas drawn at random from the seed on, each through one scenario',
    '--svg DIR         also draw each scenario, as DIR/<scenario>.svg',
    '--json            for machines: all figures, once all is done',
  ],
  more: scenarioList(),
  async run(args, output) {
    const { values, words } = readArguments(args, OPTIONS, [0, 1]);
    const { json: isJson = false, svg } = values;
    const [file] = words;
    const nodes = wholeOption('--nodes', values.nodes, 1, MOST_NODES);
    const seed = wholeOption('--seed', values.seed, 0, MOST_SEED) ?? DEFAULT_SEED;
    const random = wholeOption('--random', values.random, 1, MOST_RANDOM);
    const named = values.scenario?.map(scenarioOf);
    const progress = isJson ? { ...output, log: () => undefined } : output;
    let rows: FigureRow[];
    if (random === undefined) {
      const quota = file === undefined ? undefined : await quotaIn(file);
      rows = await runAll(named ?? SCENARIOS, { quota, nodes, seed }, svg, progress);
      printSummary(rows, progress);
    } else {
      const taken = [file, nodes, svg].find((one) => one !== undefined);
      if (taken !== undefined) throw new UsageError(`'${taken}' does not go with --random.`);
      rows = await runRandom(named ?? LOAD_SHAPES, seed, random, progress);
    }
    if (isJson) output.log(asJson(rows));
    return printVerdict(rows, progress) ? DONE : FAILED;
  },
};

const OPTIONS = {
  scenario: { type: 'string', multiple: true },
  nodes: TEXT,
  seed: TEXT,
  random: TEXT,
  svg: TEXT,
  json: FLAG,
} as const;

/** A line for each. */
function scenarioList(): string[] {
  const width = Math.max(...SCENARIOS.map(({ name }) => name.length)) + 2;
  return ['Scenarios', ...SCENARIOS.map(({ name, about }) => `  ${name.padEnd(width)}${about}`)];
}

function scenarioOf(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario !== undefined) return scenario;
  const names = SCENARIOS.map((one) => one.name).join(', ');
  throw new UsageError(`There is no scenario '${name}'. There are: ${names}.`);
}

/** The quota of a configuration, with its profile in force. */
async function quotaIn(file: string): Promise<QuotaSettings> {
  const { quota } = limitsOf(effective(checkDocument(await readDocument(file), { name: file })));
  if (quota?.cluster === undefined) {
    throw new CommandFailedError(`${file}: cluster.capacity and apps are needed for a simulation`);
  }
  return checkQuota(quota);
}

async function runAll(
  scenarios: readonly Scenario[],
  setting: Setting,
  svgDirectory: string | undefined,
  output: Output,
): Promise<FigureRow[]> {
  const rows: FigureRow[] = [];
  for (const scenario of scenarios) {
    const report = await scenario.run(setting);
    rows.push(...report.rows);
    output.log(`\n${scenario.name}: ${scenario.about}\n${formatTable(report.rows)}`);
    for (const note of report.notes ?? []) output.log(toNote(note));
    if (svgDirectory === undefined) continue;
    await write(svgDirectory, `${scenario.name}.svg`, toSvg(report.chart));
  }
  return rows;
}

/** Quotas drawn at random, a line for each; bars that were missed come with the verdict. */
async function runRandom(
  scenarios: readonly Scenario[],
  first: number,
  count: number,
  output: Output,
): Promise<FigureRow[]> {
  const rows: FigureRow[] = [];
  let [outside, missed] = [0, 0];
  for (let seed = first; seed < first + count; seed++) {
    const report = await runOnRandomQuota(seed, scenarios[seed % scenarios.length]!);
    const { notes = [] } = report;
    const isMissed = report.rows.some(({ ok }) => ok === false);
    rows.push(...report.rows);
    if (isMissed) missed++;
    if (notes.length > 0) outside++;
    const verdict = isMissed ? 'MISSED' : 'met';
    output.log([`${report.rows[0]!.scenario}  ${verdict}`, ...notes.map(toNote)].join('\n'));
  }
  const met = count - missed;
  output.log(`${met} of ${count} quotas met all bars; of ${outside} something is not promised.`);
  return rows;
}

const toNote = (note: string): string => `  not promised here: ${note}`;

/** A summary over all scenarios: the worst of each figure, beside that of the baselines. */
function printSummary(rows: readonly FigureRow[], output: Output): void {
  const ours = (figure: string): FigureRow[] =>
    rows.filter((row) => row.contender === 'weir' && row.figure.startsWith(figure));
  const judged = (figure: string): FigureRow[] => ours(figure).filter(({ bar }) => bar !== null);
  const least = (those: readonly FigureRow[]): number =>
    Math.min(...those.map(({ value }) => value));
  const most = (those: readonly FigureRow[]): number =>
    Math.max(...those.map(({ value }) => value));
  /** The figure of a baseline in the same scenarios. */
  const of = (contender: string, those: readonly FigureRow[]): FigureRow[] =>
    rows.filter(
      (row) =>
        row.contender === contender &&
        those.some(({ scenario, figure }) => scenario === row.scenario && figure === row.figure),
    );
  const used = judged('utilisation');
  const local = judged('local decisions');
  const calls = ours('store calls per second').filter((row) => of('call per request', [row])[0]);
  const spans = judged('worst ');
  const lines = [
    used.length > 0 &&
      `used of what could be had: at least ${percent(least(used))} ` +
        `(fixed split ${percent(least(of('fixed split', used)))})`,
    local.length > 0 && `decided without waiting for the store: at least ${percent(least(local))}`,
    calls.length > 0 &&
      `calls to the store: at most ${inShort(most(calls))} a second ` +
        `(call per request ${inShort(most(of('call per request', calls)))})`,
    spans.length > 0 &&
      `admitted of what the bound allows, in the worst span: ${percent(most(spans))}`,
  ].filter((line) => line !== false);
  if (lines.length > 0)
    output.log(['', 'In short:', ...lines.map((line) => `  ${line}`)].join('\n'));
}

const percent = (part: number): string =>
  `${(100 * part).toLocaleString('en', { maximumFractionDigits: 1 })} %`;

/** Returns whether every bar was met. */
function printVerdict(rows: readonly FigureRow[], output: Output): boolean {
  const judged = rows.filter(({ ok }) => ok !== null);
  const missed = judged.filter(({ ok }) => ok === false);
  const lines = missed.map(({ scenario, figure, value, bar }) => {
    return `MISSED  ${scenario}: ${figure} ${inShort(value)}, promised ${bar}`;
  });
  const sum = `${judged.length - missed.length} of ${judged.length} bars met, ${missed.length} MISSED.`;
  output.log(['', ...lines, sum].join('\n'));
  return missed.length === 0;
}

async function write(directory: string, name: string, text: string): Promise<void> {
  const file = join(directory, name);
  try {
    await mkdir(directory, { recursive: true });
    await writeFile(file, text);
  } catch (error) {
    throw new CommandFailedError(`${file}: cannot be written (${(error as Error).message})`);
  }
}
