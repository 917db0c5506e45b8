import { HttpException } from '@nestjs/common';
import { StoreUnavailableError } from '../common/errors.js';
import { type DegradeReason } from './core/contract.js';
import { DeadlineExceededError, ProtectionRejectedError } from '../protection/errors.js';

/** The first status that is the server's own fault. */
const SERVER_ERROR = 500;

/** What callers did wrong says nothing about the service. Anything else that is thrown does. */
export function isServerFault(error: unknown): boolean {
  return error instanceof HttpException ? error.getStatus() >= SERVER_ERROR : true;
}

export function reasonOf(error: unknown): DegradeReason {
  if (error instanceof DeadlineExceededError) return 'slow';
  // A breaker, a bulkhead or a rate did not let a call of the handler through.
  return error instanceof ProtectionRejectedError ? 'open' : 'failed';
}

/** There was no room for the call: a matter of how many there are, not of how the resource fares. */
export function isCrowdedOut(error: unknown): boolean {
  return error instanceof ProtectionRejectedError && error.reason !== 'open';
}

/** Level 1 lives in the same store. */
export function isStoreFault(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}
