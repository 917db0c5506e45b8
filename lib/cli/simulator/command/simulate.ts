import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CheckedQuota } from '../../../limiter/quota-options.js';
import { formatTable } from '../report/table.js';
import { inShort, type Row } from '../report/findings.js';
import { toSvg } from '../report/svg.js';
import { runOnRandomQuota } from '../scenarios/random-quota.js';
import { type ScenarioReport, type Setting } from '../scenarios/scenario.js';
import { parseArguments, usage, type SimulateArguments } from './arguments.js';
import { readConfig } from './read-config.js';
import { UsageError } from './usage-error.js';

/** Where the command says what it found, and what is wrong. */
export interface Output {
  log(text: string): void;
  error(text: string): void;
}

/** Where the quota is found that a file stands for. */
export type ReadQuota = (file: string) => Promise<CheckedQuota>;

/** What `npm run simulate` does; returns the exit code. */
export async function simulate(
  args: readonly string[],
  output: Output,
  readQuota: ReadQuota = readConfig,
): Promise<number> {
  try {
    const asked = parseArguments(args);
    if (asked.help) {
      output.log(usage());
      return 0;
    }
    const rows = await runAsked(asked, output, readQuota);
    if (asked.jsonFile !== undefined) await write(asked.jsonFile, `${toJson(rows)}\n`);
    return printVerdict(rows, output) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    output.error(error.message);
    return 1;
  }
}

/** Runs what was asked for and tells it as it comes. */
export async function runAsked(
  asked: SimulateArguments,
  output: Output,
  readQuota: ReadQuota,
): Promise<Row[]> {
  if (asked.random !== undefined) return runRandom(asked, asked.random, output);
  return runAll(asked, await settingOf(asked, readQuota), output);
}

/** Quotas drawn at random, a line for each; what was missed comes with the verdict. */
async function runRandom(
  { scenarios, seed: first }: SimulateArguments,
  count: number,
  output: Output,
): Promise<Row[]> {
  const rows: Row[] = [];
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

async function settingOf(
  { configFile, nodes, seed }: SimulateArguments,
  readQuota: ReadQuota,
): Promise<Setting> {
  const quota = configFile === undefined ? undefined : await readQuota(configFile);
  return { quota, nodes, seed };
}

async function runAll(
  { scenarios, svgDirectory }: SimulateArguments,
  setting: Setting,
  output: Output,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const scenario of scenarios) {
    const report: ScenarioReport = await scenario.run(setting);
    rows.push(...report.rows);
    output.log(`\n${scenario.name}: ${scenario.about}\n${formatTable(report.rows)}`);
    for (const note of report.notes ?? []) output.log(toNote(note));
    if (svgDirectory === undefined) continue;
    await write(join(svgDirectory, `${scenario.name}.svg`), toSvg(report.chart));
  }
  return rows;
}

const toNote = (note: string): string => `  not promised here: ${note}`;

export const toJson = (rows: readonly Row[]): string => JSON.stringify(rows, null, 2);

/** Returns whether every bar was met. */
export function printVerdict(rows: readonly Row[], output: Output): boolean {
  const judged = rows.filter(({ ok }) => ok !== null);
  const missed = judged.filter(({ ok }) => ok === false);
  const lines = missed.map(({ scenario, figure, value, bar }) => {
    return `MISSED  ${scenario}: ${figure} ${inShort(value)}, promised ${bar}`;
  });
  const sum = `${judged.length - missed.length} of ${judged.length} bars met, ${missed.length} MISSED.`;
  output.log(['', ...lines, sum].join('\n'));
  return missed.length === 0;
}

async function write(file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  } catch (error) {
    throw new UsageError(`${file}: cannot be written (${(error as Error).message})`);
  }
}
