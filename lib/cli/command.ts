import { RateLimitError } from '../common/errors.js';

/** Where a command says what it found, and what is wrong. */
export interface Output {
  log(text: string): void;
  error(text: string): void;
}

/** What can be asked for on the command line. */
export interface Command {
  /** One or two words: `config check`. */
  readonly name: string;
  /** What follows the name. */
  readonly takes: string;
  /** In one line. */
  readonly about: string;
  /** Its own options, a line for each. */
  readonly options: readonly string[];
  /** What else there is to know before it is used, a line for each. */
  readonly more?: readonly string[];
  /** Resolves to the exit code. */
  run(args: readonly string[], output: Output): Promise<number>;
}

/** The command did what it was asked for. */
export const DONE = 0;
/** It did not, or what it looked at is wrong. */
export const FAILED = 1;
/** It could not make sense of what it was asked for. */
export const MISUSED = 2;

/** A mistake in the arguments: told together with how the command is used. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command was understood, and cannot be done: told in one line, without how to use it. */
export class CommandFailedError extends RateLimitError {
  readonly code = 'COMMAND_FAILED';
}
