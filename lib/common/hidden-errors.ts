import { type Clock } from './clock.js';
import { RateLimitError } from './errors.js';
import { MinuteLog } from './minute-log.js';
import { quoted, quotedError, withoutSteering } from './quoted.js';

interface HiddenError {
  readonly where: string;
  readonly error: unknown;
}

const MOST_FRAMES = 20;
const LONGEST_FRAME = 200;

/** Errors that no caller saw, as another answer was given: a few lines a minute for each place and sort of error. */
export class HiddenErrors {
  private readonly log: MinuteLog<HiddenError>;

  constructor(
    clock: Pick<Clock, 'every'>,
    logger: { error(text: string, stack: string | undefined): void; error(text: string): void },
  ) {
    this.log = new MinuteLog(clock, {
      once: (_, { where, error }) => {
        const text = `${where} failed, and its caller got another answer: ${textOf(error)}`;
        logger.error(text, stackOf(error));
      },
      again: (_, count, { where, error }) => {
        const times = count === 1 ? 'once more' : `${count} times more`;
        logger.error(`${where} failed ${times} within a minute, the last one: ${textOf(error)}`);
      },
    });
  }

  add(where: string, error: unknown): void {
    this.log.add(`${where} ${nameOf(error)}`, { where, error });
  }

  close(): void {
    this.log.close();
  }
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);

const textOf = (error: unknown): string => `${quoted(nameOf(error))} ${quotedError(error)}`;

/** Where it was thrown: without the message, which may hold anything. Refusals of ours need none. */
function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof RateLimitError) return undefined;
  const { stack, message } = error;
  if (typeof stack !== 'string') return undefined;
  const at = stack.indexOf(message);
  const below = stack.slice(at < 0 ? 0 : at + message.length);
  const frames = below.split('\n').slice(1, MOST_FRAMES + 1);
  return frames.map((frame) => withoutSteering(frame.slice(0, LONGEST_FRAME))).join('\n');
}
