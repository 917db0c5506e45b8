import {
  asyncScheduler,
  defer,
  retry,
  throwError,
  timer,
  type MonoTypeOperatorFunction,
  type SchedulerLike,
} from 'rxjs';
import { durationMs, type Duration } from '../../common/duration.js';
import { InvalidArgumentError } from '../../common/errors.js';
import { rejectUnknown } from '../../common/validate.js';
import { RetryBudget } from './retry-budget.js';
import {
  type RateLimitedBody,
  type RejectionBody,
  type UnansweredBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import {
  servedStatusOf,
  type GrpcRateLimitError,
  type GrpcUnavailableError,
} from '../grpc/status-reader.js';

export {
  type GrpcCallError,
  type GrpcRateLimitError,
  type GrpcUnavailableError,
} from '../grpc/status-reader.js';

/** The answer to a denied request whose route has words for it, by `@Degrade`. */
export interface LimitedUnansweredBody extends UnansweredBody {
  readonly retryAfterMs: number;
}

/**
 * For clients of a limited service: true for the error of a request that was denied, as it came
 * over the wire. `retryAfterMsOf` says after how long to come back, on every transport.
 */
export function isRateLimitError(
  error: unknown,
): error is RateLimitedBody | LimitedUnansweredBody | GrpcRateLimitError {
  if (typeof error !== 'object' || error === null) return false;
  const status = servedStatusOf(error);
  const { code, retryAfterMs } =
    status === undefined
      ? (error as Partial<RejectionBody>)
      : { code: status.reason, retryAfterMs: status.retryAfterMs };
  const isWait = typeof retryAfterMs === 'number' && retryAfterMs >= 0;
  // Words of `@Degrade` have a wait only where the caller was over a limit.
  if (isWait && code === 'DEGRADED') return true;
  return (isWait || status !== undefined) && (code === 'RATE_LIMITED' || code === 'OVERLOADED');
}

const UNAVAILABLE: ReadonlySet<unknown> = new Set<UnavailableBody['code']>([
  ...(['PROTECTION_REJECTED', 'BULKHEAD_REJECTED', 'BREAKER_OPEN', 'DEADLINE_EXCEEDED'] as const),
]);

/**
 * For clients of a service that protects what it needs: true for the error of a request that was
 * turned away (503), or that has taken too long (504), as it came over the wire.
 */
export function isUnavailableError(
  error: unknown,
): error is UnavailableBody | GrpcUnavailableError {
  if (typeof error !== 'object' || error === null) return false;
  const served = servedStatusOf(error);
  if (served !== undefined) return UNAVAILABLE.has(served.reason);
  const { status, code, retryAfterMs = 0 } = error as Partial<UnavailableBody>;
  const isWait = typeof retryAfterMs === 'number' && retryAfterMs >= 0;
  return status === 'error' && UNAVAILABLE.has(code) && isWait;
}

/** The wait that a service asks for with its error; undefined if it does not. */
export function retryAfterMsOf(error: unknown): number | undefined {
  const status = servedStatusOf(error);
  if (status !== undefined) return status.retryAfterMs;
  return isRateLimitError(error) || isUnavailableError(error) ? error.retryAfterMs : undefined;
}

/** The initial values are the defaults. */
export class RetryAfterOptions {
  /** How often a request is sent again. */
  retries = 3;
  /** For a longer wait the error is passed on at once. */
  maxWait: Duration = '30s';
  /** Up to this part is added to each wait, so that callers do not all come back together. */
  jitter = 0.2;
  /**
   * No more retries than this part of the requests of the last 10 s, and one a second; over it the error is
   * passed on. A `RetryBudget` is shared by all that are given it; a number is for what goes through this operator.
   */
  budget?: number | RetryBudget;
  /** The source of time; tests bring their own. */
  scheduler?: SchedulerLike;
}

const KNOWN = [...Object.keys(new RetryAfterOptions()), 'budget', 'scheduler'];

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
  const budget = budgetOf(input.budget);
  const now = (): number => (scheduler ?? asyncScheduler).now();
  const again = retry<T>({
    count: retries,
    delay: (error: unknown) => {
      const namedMs = retryAfterMsOf(error);
      if (namedMs === undefined || namedMs > maxWaitMs) return throwError(() => error);
      if (budget?.tryRetry(now()) === false) return throwError(() => error);
      // Never at once, even for a wait of 0: the same answer would come back.
      const waitMs = Math.max(1, namedMs);
      return timer(Math.ceil(waitMs + waitMs * jitter * Math.random()), scheduler);
    },
  });
  if (budget === undefined) return again;
  return (source) =>
    defer(() => {
      budget.request(now());
      return again(source);
    });
}

function budgetOf(input: RetryAfterOptions['budget']): RetryBudget | undefined {
  if (input === undefined || input instanceof RetryBudget) return input;
  return new RetryBudget(input);
}
