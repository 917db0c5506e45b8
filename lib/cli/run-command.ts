import { libraryVersion } from '../stores/package-file.js';
import { InvalidConfigError, RateLimitError, withoutSecrets } from '../common/errors.js';
import { withoutSteering } from '../common/quoted.js';
import { nearest } from '../common/nearest.js';
import { asJson, UsageError, DONE, FAILED, MISUSED, type Command, type Output } from './command.js';
import { configCheck } from './config-check.js';
import { configDiff, configGet, configHistory } from './config-read.js';
import { configCancel, configStaged } from './config-staged.js';
import { configRollback, configSet, configUnset } from './config-write.js';
import { degradeForce, degradeObserve, degradeRelease } from './degrade.js';
import { keyGet, keyReset } from './key.js';
import { report } from './report.js';
import { migrate } from './migrate.js';
import { simulate } from './simulate.js';
import { status } from './status.js';
import { terminalOf, type Terminal } from './terminal.js';
import { top } from './top.js';
import { warm } from './warm.js';

export const COMMANDS: readonly Command[] = [
  configCheck,
  configGet,
  configSet,
  configUnset,
  configDiff,
  configHistory,
  configRollback,
  configStaged,
  configCancel,
  status,
  top,
  report,
  keyGet,
  keyReset,
  degradeForce,
  degradeObserve,
  degradeRelease,
  warm,
  simulate,
  migrate,
];

/**
 * Runs `npx weir`; resolves to the exit code. Names and values come from any writer to the
 * store, so nothing is printed that steers a terminal.
 */
export function runCommand(
  args: readonly string[],
  output: Output,
  terminal: Terminal = terminalOf(process),
): Promise<number> {
  const plain = {
    log: (text: string) => output.log(withoutSteering(text)),
    error: (text: string) => output.error(withoutSecrets(withoutSteering(text))),
  };
  return run(args, plain, terminal);
}

async function run(args: readonly string[], output: Output, terminal: Terminal): Promise<number> {
  const [first = '--help'] = args;
  if (first === '--version' || first === '-v') return tell(output, libraryVersion());
  if (isHelp(first)) return help(args.slice(1), output);
  const command = COMMANDS.find(({ name }) => isNamed(name, args));
  if (command === undefined) return noCommand(args, output);
  const rest = args.slice(command.name.split(' ').length);
  if (rest.includes('--help') || rest.includes('-h')) return tell(output, usageOf(command));
  try {
    return await command.run(rest, output, terminal);
  } catch (error) {
    return failed(error, command, rest.includes('--json'), output);
  }
}

const isHelp = (word: string | undefined): boolean =>
  word === '--help' || word === 'help' || word === '-h';

const isNamed = (name: string, args: readonly string[]): boolean =>
  name.split(' ').every((word, i) => args[i] === word);

const groupOf = (word: string | undefined): Command[] =>
  COMMANDS.filter(({ name }) => name.startsWith(`${word} `));

function help(words: readonly string[], output: Output): number {
  if (words.length === 0) return tell(output, overview('COMMAND', COMMANDS));
  const command = COMMANDS.find(({ name }) => isNamed(name, words));
  if (command !== undefined) return tell(output, usageOf(command));
  return noCommand(words.length === 1 ? [...words, '--help'] : words, output);
}

function noCommand(args: readonly string[], output: Output): number {
  const [first, second] = args;
  const group = groupOf(first);
  if (group.length > 0 && isHelp(second)) {
    return tell(output, overview(`${first} COMMAND`, group));
  }
  output.error(unknown(args, group));
  return MISUSED;
}

function tell(output: Output, text: string): number {
  output.log(text);
  return DONE;
}

/** Machines get an answer that they can read also if something is wrong. */
function failed(error: unknown, command: Command, isJson: boolean, output: Output): number {
  const isMisuse = error instanceof UsageError;
  if (!isMisuse && !(error instanceof RateLimitError)) throw error;
  const message = withoutSecrets(error.message);
  if (isJson) {
    const code = isMisuse ? 'USAGE' : error.code;
    const issues = error instanceof InvalidConfigError ? error.issues : undefined;
    output.log(asJson({ error: { code, message, issues } }));
  }
  output.error(isMisuse ? `${message}\n\n${usageOf(command)}` : message);
  return isMisuse ? MISUSED : FAILED;
}

function overview(takes: string, commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name, takes: own }) => `${name} ${own}`.length)) + 2;
  return [
    `Usage: weir ${takes} [OPTIONS]`,
    '',
    ...commands.map(({ name, takes: own, about }) => `  ${`${name} ${own}`.padEnd(width)}${about}`),
    '',
    'weir COMMAND --help shows the options of a command, weir --version the version.',
    'Exit codes: 0 done, 1 failed or found wrong, 2 not understood.',
  ].join('\n');
}

function usageOf({ name, takes, about, options, more = [] }: Command): string {
  const usage = `Usage: weir ${`${name} ${takes}`.trim()} [OPTIONS]`;
  const sentence = `${about[0]!.toUpperCase()}${about.slice(1)}.`;
  const lines = [usage, sentence, '', ...options.map((option) => `  ${option}`)];
  return [...lines, ...(more.length > 0 ? ['', ...more] : [])].join('\n');
}

function unknown(args: readonly string[], group: readonly Command[]): string {
  const asked = group.length > 0 ? args.slice(0, 2).join(' ') : args[0]!;
  const names = COMMANDS.map(({ name }) => name);
  const firstWords = [...new Set(names.map((name) => name.split(' ')[0]!))];
  const likeFirst = (): string | undefined =>
    nearest(args[0]!, firstWords) ?? firstWords.find((word) => word.startsWith(args[0]!));
  const likeBoth = nearest(args.slice(0, 2).join(' '), names);
  const meant = likeBoth ?? (group.length > 0 ? undefined : likeFirst());
  const there = ` There are: ${group.map(({ name }) => name).join(', ')}.`;
  const others = group.length > 0 ? there : '';
  const hint = meant === undefined ? others : ` Did you mean '${meant}'?`;
  return `There is no command '${asked}'.${hint} Try weir --help.`;
}
