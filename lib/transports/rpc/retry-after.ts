import { retry, throwError, timer, type MonoTypeOperatorFunction, type SchedulerLike } from 'rxjs';
import { durationMs, type Duration } from '../../common/duration.js';
import { InvalidArgumentError } from '../../common/errors.js';
import { rejectUnknown } from '../../common/validate.js';
import { retryAfterMsOf } from './rate-limit-errors.js';

/** The initial values are the defaults. */
export class RetryAfterOptions {
  /** How often a request is sent again. */
  retries = 3;
  /** Longer than this nobody waits: the error is passed on at once. */
  maxWait: Duration = '30s';
  /** Up to this part is added to each wait, so that callers do not all come back together. */
  jitter = 0.2;
  /** The source of time; tests bring their own. */
  scheduler?: SchedulerLike;
}

const KNOWN = [...Object.keys(new RetryAfterOptions()), 'scheduler'];

/**
 * For clients of a limited service: sends a request that was denied or turned away again after the
 * time that the service has named. Other errors, and those for too long or too often, are passed on.
 *
 * `client.send('sum', data).pipe(retryAfter())`
 */
export function retryAfter<T>(input: Partial<RetryAfterOptions> = {}): MonoTypeOperatorFunction<T> {
  rejectUnknown('retryAfter', input, KNOWN);
  const { retries, maxWait, jitter, scheduler } = Object.assign(new RetryAfterOptions(), input);
  if (!Number.isInteger(retries) || retries < 0) {
    throw new InvalidArgumentError('retries', retries, 'a whole number from 0 on');
  }
  if (!(jitter >= 0 && jitter <= 1)) {
    throw new InvalidArgumentError('jitter', jitter, 'a number from 0 to 1');
  }
  const maxWaitMs = durationMs(maxWait, 'maxWait');
  return retry({
    count: retries,
    delay: (error: unknown) => {
      const namedMs = retryAfterMsOf(error);
      if (namedMs === undefined || namedMs > maxWaitMs) return throwError(() => error);
      // Never at once, whatever the service says: the same answer would come back.
      const waitMs = Math.max(1, namedMs);
      return timer(Math.ceil(waitMs + waitMs * jitter * Math.random()), scheduler);
    },
  });
}
