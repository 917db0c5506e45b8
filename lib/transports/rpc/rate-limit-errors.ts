import { type RateLimitedBody, type UnavailableBody } from '../../requests/rejections.js';
import {
  servedStatusOf,
  type GrpcRateLimitError,
  type GrpcUnavailableError,
} from '../grpc/status-reader.js';

export { type GrpcRateLimitError, type GrpcUnavailableError } from '../grpc/status-reader.js';

/**
 * For clients of a limited service: true for the error of a request that was denied, as it came
 * over the wire. `retryAfterMsOf` says after how long to come back, on every transport.
 */
export function isRateLimitError(error: unknown): error is RateLimitedBody | GrpcRateLimitError {
  if (typeof error !== 'object' || error === null) return false;
  const status = servedStatusOf(error);
  if (status !== undefined) return isDenial(status.reason);
  const { code, retryAfterMs } = error as Partial<RateLimitedBody>;
  return isDenial(code) && typeof retryAfterMs === 'number' && retryAfterMs >= 0;
}

const isDenial = (code: unknown): boolean => code === 'RATE_LIMITED' || code === 'OVERLOADED';

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

/** After how long a service wants to be asked again, by its error; undefined if it has not said so. */
export function retryAfterMsOf(error: unknown): number | undefined {
  const status = servedStatusOf(error);
  if (status !== undefined) return status.retryAfterMs;
  return isRateLimitError(error) || isUnavailableError(error) ? error.retryAfterMs : undefined;
}
