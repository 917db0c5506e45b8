import { RateLimitError } from '../common/errors.js';
import { type Terminal } from './terminal.js';

/** Where a command prints its results and its errors. */
export interface Output {
  log(text: string): void;
  error(text: string): void;
}

/** A command of `weir`. */
export interface Command {
  /** One or two words: `config check`. */
  readonly name: string;
  /** Its positional arguments. */
  readonly takes: string;
  /** The command in one line. */
  readonly about: string;
  /** Its own options, a line for each. */
  readonly options: readonly string[];
  /** More lines for `--help`. */
  readonly more?: readonly string[];
  /** Resolves to the exit code. */
  run(args: readonly string[], output: Output, terminal: Terminal): Promise<number>;
}

/** Exit code: done. */
export const DONE = 0;
/** Exit code: not done, or the input was found wrong. */
export const FAILED = 1;
/** Exit code: the arguments were not understood. */
export const MISUSED = 2;

/** A mistake in the arguments: printed together with the usage. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command was understood, and cannot be done: printed in one line, without the usage. */
export class CommandFailedError extends RateLimitError {
  readonly code = 'COMMAND_FAILED';
}

/** The value as `--json` writes it. */
export const asJson = (value: unknown): string => JSON.stringify(value, null, 2);
