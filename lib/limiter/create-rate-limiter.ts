import { type RateLimiterOptions } from './options.js';
import { type RateLimiter } from './rate-limiter.js';
import { WeirRateLimiter } from './weir-rate-limiter.js';

/**
 * A limiter without Nest: the same that `RateLimitModule` provides. Apart from the class, so that importing the
 * package does not load the limiter.
 */
export function createRateLimiter(options: RateLimiterOptions = {}): RateLimiter {
  return new WeirRateLimiter(options);
}
