import { HttpException } from '@nestjs/common';
import { RateLimitError, StoreUnavailableError } from '../common/errors.js';
import { type DegradeReason } from '../degradation/index.js';

/** The first status that is the server's own fault. */
const SERVER_ERROR = 500;
/** What protection throws when it does not let a call through. */
const OPEN: ReadonlySet<string> = new Set(['BREAKER_OPEN', 'CIRCUIT_OPEN', 'BULKHEAD_FULL']);

/** What callers did wrong says nothing about the service. Anything else that is thrown does. */
export function isServerFault(error: unknown): boolean {
  return error instanceof HttpException ? error.getStatus() >= SERVER_ERROR : true;
}

export function reasonOf(error: unknown): DegradeReason {
  return error instanceof RateLimitError && OPEN.has(error.code) ? 'open' : 'failed';
}

/** Level 1 lives in the same store. */
export function isStoreFault(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}
