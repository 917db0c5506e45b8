import { InvalidArgumentError } from '../common/errors.js';

// Options of @nestjs/throttler, whose users are likely to try them here first.

/** By its address: the package has no docs. */
const PAGE =
  'https://github.com/nestjs-weir/nestjs-weir/blob/main/docs/migrating-from-throttler.md has it word by word';

/** `forRoot([{ ttl, limit }])` and `forRoot({ throttlers: […] })`. */
export function rejectThrottlerOptions(at: string, options: unknown): void {
  const list = Array.isArray(options) ? options : (options as { throttlers?: unknown })?.throttlers;
  if (!Array.isArray(list)) return;
  throw throttlerError(at, options, `{ policies: { default: ${policyOf(list[0])} } }`);
}

/** `{ ttl, limit }` in the place of a policy, and `{ default: { ttl, limit } }` around one. */
export function rejectThrottlerPolicy(at: string, policy: unknown): void {
  if (isThrottle(policy)) throw throttlerError(at, policy, policyOf(policy));
  // The limit of what passes over the others is an option of ours.
  const { passThrough: _, ...parts } = Object(policy) as { readonly passThrough?: unknown };
  const named = Object.values(parts).find(isThrottle);
  if (named !== undefined) throw throttlerError(at, policy, policyOf(named));
}

function isThrottle(value: unknown): value is { ttl?: unknown; limit?: unknown } {
  if (typeof value !== 'object' || value === null || 'rate' in value) return false;
  return 'ttl' in value || 'limit' in value;
}

/** The same limit as an option of this library, as far as its figures are known. */
function policyOf(throttle: unknown): string {
  const { ttl, limit } = (throttle ?? {}) as { ttl?: unknown; limit?: unknown };
  const figure = (value: unknown, name: string): string =>
    typeof value === 'number' ? String(value) : name;
  const [rate, period] = [figure(limit, 'limit'), figure(ttl, 'ttl')];
  return `{ algorithm: 'sliding-window', rate: ${rate}, period: ${period} }`;
}

function throttlerError(at: string, value: unknown, ours: string): InvalidArgumentError {
  const expectation = `${ours} in the place of @nestjs/throttler's ttl and limit`;
  const message = `${at}: expected ${expectation}; ${PAGE}`;
  return new InvalidArgumentError(at, value, expectation, message);
}
