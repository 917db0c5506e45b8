import { RateLimitError } from '../common/errors.js';
import { libraryVersion } from '../config/library-version.js';
import { nearest } from '../common/nearest.js';
import { UsageError } from '../simulation/index.js';
import { DONE, FAILED, MISUSED, type Command, type Output } from './command.js';
import { configCheck } from './config-check.js';
import { configDiff, configGet, configHistory } from './config-read.js';
import { configRollback, configSet } from './config-write.js';
import { simulate } from './simulate.js';
import { status } from './status.js';

export const COMMANDS: readonly Command[] = [
  configCheck,
  configGet,
  configSet,
  configDiff,
  configHistory,
  configRollback,
  status,
  simulate,
];

/** What `npx weir` does; resolves to the exit code. */
export async function runCommand(args: readonly string[], output: Output): Promise<number> {
  const [first = '--help'] = args;
  if (first === '--help' || first === 'help' || first === '-h') return tell(output, overview());
  if (first === '--version' || first === '-v') return tell(output, libraryVersion());
  const command = COMMANDS.find(({ name }) => isNamed(name, args));
  if (command === undefined) return misused(output, unknown(args));
  const rest = args.slice(command.name.split(' ').length);
  if (rest.includes('--help') || rest.includes('-h')) return tell(output, usageOf(command));
  try {
    return await command.run(rest, output);
  } catch (error) {
    if (error instanceof UsageError)
      return misused(output, `${error.message}\n\n${usageOf(command)}`);
    if (!(error instanceof RateLimitError)) throw error;
    output.error(error.message);
    return FAILED;
  }
}

const isNamed = (name: string, args: readonly string[]): boolean =>
  name.split(' ').every((word, i) => args[i] === word);

function tell(output: Output, text: string): number {
  output.log(text);
  return DONE;
}

function misused(output: Output, text: string): number {
  output.error(text);
  return MISUSED;
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name, takes }) => `${name} ${takes}`.length)) + 2;
  return [
    'Usage: weir COMMAND [OPTIONS]',
    '',
    ...COMMANDS.map(({ name, takes, about }) => `  ${`${name} ${takes}`.padEnd(width)}${about}`),
    '',
    'weir COMMAND --help shows the options of a command, weir --version the version.',
    'Exit codes: 0 done, 1 failed or found wrong, 2 not understood.',
  ].join('\n');
}

function usageOf({ name, takes, about, options }: Command): string {
  const usage = `Usage: weir ${`${name} ${takes}`.trim()} [OPTIONS]`;
  const sentence = `${about[0]!.toUpperCase()}${about.slice(1)}.`;
  return [usage, sentence, '', ...options.map((option) => `  ${option}`)].join('\n');
}

function unknown(args: readonly string[]): string {
  const isGroup = COMMANDS.some(({ name }) => name.startsWith(`${args[0]} `));
  const asked = isGroup ? args.slice(0, 2).join(' ') : args[0]!;
  const names = COMMANDS.map(({ name }) => name);
  const meant = nearest(args.slice(0, 2).join(' '), names) ?? nearest(args[0]!, names);
  const hint = meant === undefined ? '' : ` Did you mean '${meant}'?`;
  return `There is no command '${asked}'.${hint} Try weir --help.`;
}
