import { type Output } from '../../command.js';
import { EVENTS, historyOf } from './history.js';
import { runHistory } from './run-history.js';
import { describeHistory, shrink } from './shrink.js';

/** The result of many histories. */
export interface HistoriesResult {
  readonly histories: number;
  readonly decisions: number;
  readonly admitted: number;
  /** Number of events of each kind. */
  readonly events: Readonly<Record<string, number>>;
  /** Seeds of those in which a check failed. */
  readonly broken: readonly number[];
}

/** The most failures that are shown in full; the rest are likely the same. */
const MOST_SHOWN = 5;

/** Runs the histories of so many seeds, and shows those that fail as short as they get. */
export async function runHistories(
  firstSeed: number,
  count: number,
  output: Pick<Output, 'log'>,
): Promise<HistoriesResult> {
  const events: Record<string, number> = {};
  const broken: number[] = [];
  let decisions = 0;
  let admitted = 0;
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const history = historyOf(seed);
    for (const { kind } of history.events) events[kind] = (events[kind] ?? 0) + 1;
    const result = await runHistory(history);
    decisions += result.decisions;
    admitted += result.admitted;
    if (result.broken === undefined) continue;
    broken.push(seed);
    if (broken.length > MOST_SHOWN) continue;
    const shrunk = await shrink(history);
    if (shrunk !== undefined) output.log(`seed ${seed}: ${describeHistory(shrunk)}`);
  }
  return { histories: count, decisions, admitted, events, broken };
}

/** The command `node scripts/run-histories.mjs [count] [first seed]`; returns the exit code. */
export async function histories(args: readonly string[], output: Output): Promise<number> {
  const [count, firstSeed] = [Number(args[0] ?? 1000), Number(args[1] ?? 1)];
  if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(firstSeed)) {
    output.error('usage: node scripts/run-histories.mjs [how many, 1000] [first seed, 1]');
    return 1;
  }
  const { decisions, admitted, events, broken } = await runHistories(firstSeed, count, output);
  const kinds = Object.entries(events).sort(([, a], [, b]) => b - a);
  output.log(
    `${count} histories of ${EVENTS} events, seeds ${firstSeed} to ${firstSeed + count - 1}`,
  );
  output.log(kinds.map(([kind, times]) => `${kind} ${times}`).join(', '));
  output.log(`${decisions} decisions, ${admitted} tokens admitted`);
  output.log(`${broken.length} broken${broken.length > 0 ? `: ${broken.join(' ')}` : ''}`);
  return broken.length === 0 ? 0 : 1;
}
