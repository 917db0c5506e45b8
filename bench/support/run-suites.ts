import { toRow, type Row } from './rows.js';
import { type Bar, type Suite, type SuiteContext, type Verdict } from './suite.js';
import { formatBar, formatTable } from './table.js';

export interface RunResult {
  readonly rows: readonly Row[];
  readonly bars: readonly Bar[];
  /** Suites that broke off, with the reason. */
  readonly failures: readonly string[];
}

/** Runs all suites, whatever becomes of each, and prints what they found. */
export async function runSuites(suites: readonly Suite[], rounds: number): Promise<RunResult> {
  const rows: Row[] = [];
  const bars: Bar[] = [];
  const failures: string[] = [];
  for (const suite of suites) {
    try {
      const report = await suite.run(contextOf(suite, rounds));
      const suiteRows = report.series.map((series) => toRow(suite.name, series));
      rows.push(...suiteRows);
      bars.push(
        ...report.bars.map((bar) => ({ ...bar, promise: `${suite.name}: ${bar.promise}` })),
      );
      console.log(`\n${suite.name}: ${suite.about}`);
      console.log(formatTable(suiteRows, report.absences ?? []));
      for (const note of report.notes ?? []) console.log(`\nNote: ${note}`);
    } catch (error) {
      failures.push(`${suite.name}: ${error instanceof Error ? error.message : String(error)}`);
      console.error(error);
    }
  }
  return { rows, bars, failures };
}

/** Returns the exit code: 1 for a bar that was missed or a suite that broke off, 2 for one that is undecided. */
export function printVerdict({ bars, failures }: RunResult): number {
  console.log('');
  for (const bar of bars) console.log(formatBar(bar));
  for (const failure of failures) console.log(`FAILED  ${failure}`);
  const count = (verdict: Verdict): number => bars.filter((bar) => bar.verdict === verdict).length;
  const [missed, undecided] = [count('missed'), count('undecided')];
  console.log(
    `\n${count('ok')} of ${bars.length} bars met, ${missed} MISSED, ${undecided} undecided.`,
  );
  if (failures.length > 0) console.log(`${failures.length} suite(s) did not finish.`);
  if (missed > 0 || failures.length > 0) return 1;
  return undecided > 0 ? 2 : 0;
}

/** Goes to the error stream, so that the tables can be kept in a file. */
function contextOf(suite: Suite, rounds: number): SuiteContext {
  let lastCase = '';
  return {
    rounds,
    progress(caseName, step) {
      if (process.stderr.isTTY) {
        process.stderr.write(`\r\x1b[K${suite.name}: ${caseName}: ${step}\r`);
      } else if (caseName !== lastCase) {
        process.stderr.write(`${suite.name}: ${caseName}\n`);
      }
      lastCase = caseName;
    },
  };
}
