import { DeadlineExceededError, type ProtectionRejectedError } from './errors.js';
import { type UnavailableBody } from '../requests/rejections.js';

/** What a handler ends with if protection did not let it through, or its resource was too slow. */
export type ProtectionFailure = ProtectionRejectedError | DeadlineExceededError;

const CODES = {
  limited: 'PROTECTION_REJECTED',
  full: 'BULKHEAD_REJECTED',
  waited: 'BULKHEAD_REJECTED',
  open: 'BREAKER_OPEN',
} as const;

/** The message of an error names the resource, so none of it is passed on. */
export function unavailableBodyOf(error: ProtectionFailure): UnavailableBody {
  if (error instanceof DeadlineExceededError) {
    return {
      status: 'error',
      statusCode: 504,
      code: 'DEADLINE_EXCEEDED',
      message: 'The service could not answer in time',
    };
  }
  const { reason, retryAfterMs } = error;
  return {
    status: 'error',
    statusCode: 503,
    code: CODES[reason],
    message: 'The service cannot answer this at the moment',
    ...(retryAfterMs > 0 && { retryAfterMs }),
  };
}
