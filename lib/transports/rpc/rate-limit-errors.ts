import { type RateLimitedBody, type UnavailableBody } from '../../guards/index.js';

/**
 * For clients of a limited service: true for the error of a request that was denied, as it came
 * over the wire.
 */
export function isRateLimitError(error: unknown): error is RateLimitedBody {
  if (typeof error !== 'object' || error === null) return false;
  const { code, retryAfterMs } = error as Partial<RateLimitedBody>;
  const isDenial = code === 'RATE_LIMITED' || code === 'OVERLOADED';
  return isDenial && typeof retryAfterMs === 'number' && retryAfterMs >= 0;
}

const UNAVAILABLE: ReadonlySet<unknown> = new Set<UnavailableBody['code']>([
  ...(['PROTECTION_REJECTED', 'BULKHEAD_REJECTED', 'BREAKER_OPEN', 'DEADLINE_EXCEEDED'] as const),
]);

/**
 * For clients of a service that protects what it needs: true for the error of a request that was
 * turned away (503), or that has taken too long (504), as it came over the wire.
 */
export function isUnavailableError(error: unknown): error is UnavailableBody {
  if (typeof error !== 'object' || error === null) return false;
  const { status, code, retryAfterMs = 0 } = error as Partial<UnavailableBody>;
  const isWait = typeof retryAfterMs === 'number' && retryAfterMs >= 0;
  return status === 'error' && UNAVAILABLE.has(code) && isWait;
}

/** After how long a service wants to be asked again; undefined if it has not said so. */
export function namedWaitMs(error: unknown): number | undefined {
  return isRateLimitError(error) || isUnavailableError(error) ? error.retryAfterMs : undefined;
}
