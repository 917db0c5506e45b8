import { RateLimitError } from '../common/errors.js';

/** The command was understood, and cannot be done: told in one line, without how to use it. */
export class CommandFailedError extends RateLimitError {
  readonly code = 'COMMAND_FAILED';
}
