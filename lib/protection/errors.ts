import { didYouMean, InvalidArgumentError, RateLimitError } from '../common/errors.js';

/** Why a call was turned away before it began. */
export type RejectionReason = 'limited' | 'full' | 'waited' | 'open' | 'throttled';

/** The resource was not touched. Never a failure of the resource, so no breaker counts it. */
export class ProtectionRejectedError extends RateLimitError {
  readonly code: string = 'PROTECTION_REJECTED';

  constructor(
    readonly resource: string,
    readonly reason: RejectionReason,
    /** When it makes sense to come back; 0 if that is not known. */
    readonly retryAfterMs: number,
    message = `resource "${resource}": over its rate, retry in ${retryAfterMs} ms`,
  ) {
    super(message);
  }
}

/** No slot was free: the line was full, or the wait too long. */
export class BulkheadRejectedError extends ProtectionRejectedError {
  override readonly code = 'BULKHEAD_REJECTED';

  constructor(resource: string, reason: 'full' | 'waited', inFlight: number, waitedMs: number) {
    const why = reason === 'full' ? 'and as many wait as may' : `no slot within ${waitedMs} ms`;
    super(resource, reason, 0, `resource "${resource}": ${inFlight} calls in flight, ${why}`);
  }
}

/** The resource has failed, or was too slow, and is left alone for a while. */
export class BreakerOpenError extends ProtectionRejectedError {
  override readonly code = 'BREAKER_OPEN';

  constructor(resource: string, retryAfterMs: number) {
    super(
      resource,
      'open',
      retryAfterMs,
      `resource "${resource}": its breaker is open, retry in ${retryAfterMs} ms`,
    );
  }
}

/** The answer did not come in time. The resource may still be at work on it. */
export class DeadlineExceededError extends RateLimitError {
  readonly code = 'DEADLINE_EXCEEDED';

  constructor(
    readonly resource: string,
    readonly deadlineMs: number,
    /** False if the time was gone before the call could begin. */
    readonly started: boolean,
  ) {
    const when = started ? 'no answer' : 'not even begun';
    super(`resource "${resource}": ${when} within ${deadlineMs} ms`);
  }
}

/** Too big to be sent; `splitValue` makes smaller ones of it. */
export class BigValueError extends RateLimitError {
  readonly code = 'BIG_VALUE';

  constructor(
    readonly resource: string,
    readonly bytes: number,
    readonly maxValueBytes: number,
  ) {
    super(
      `resource "${resource}": a value of ${bytes} bytes, more than its maxValueBytes of ` +
        `${maxValueBytes}; split it with splitValue`,
    );
  }
}

/** No resource of that name is described. */
export class UnknownResourceError extends InvalidArgumentError {
  override readonly code = 'UNKNOWN_RESOURCE';

  /** `where` is the place that names it. */
  constructor(resource: string, known: readonly string[], where?: string) {
    const names = known.length > 0 ? known.map((name) => `"${name}"`).join(', ') : '(none)';
    const hint =
      known.length > 0
        ? didYouMean(resource, known)
        : ` describe it: forRoot({ protection: { ${/^\w+$/.test(resource) ? resource : `'${resource}'`}: 'database' } });`;
    const message = `unknown resource "${resource}";${hint} there is ${names}`;
    super('resource', resource, names, where === undefined ? message : `${where}: ${message}`);
  }
}

/** `@Protect` on an object that Nest did not make, so that it was given no Protection. */
export class ProtectionMissingError extends RateLimitError {
  readonly code = 'PROTECTION_MISSING';

  constructor(resource: string, method: string) {
    super(
      `@Protect('${resource}') on ${method}: this object is no provider of an application that ` +
        'imports RateLimitModule. Let Nest make it, or call protection.run yourself. In a unit ' +
        'test import RateLimitTestingModule of nestjs-weir/testing.',
    );
  }
}
