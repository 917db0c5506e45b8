import { type RateLimitedBody } from '../../guards/index.js';

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
