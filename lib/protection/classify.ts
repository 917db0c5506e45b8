import { type Outcome } from './breaker-state.js';
import { BigValueError, ProtectionRejectedError } from './errors.js';
import { type ResourceOptions } from './resource-options.js';

/**
 * What an error of the work says about the resource. A rejection by another resource, or by none,
 * says nothing: a pool that is full is not a server that is down.
 */
export function outcomeOf(error: unknown, isFailure: ResourceOptions['isFailure']): Outcome {
  if (error instanceof ProtectionRejectedError || error instanceof BigValueError) return 'neutral';
  if (isFailure === undefined) return isAbort(error) ? 'neutral' : 'failure';
  try {
    const verdict = isFailure(error);
    if (verdict === 'neutral') return 'neutral';
    return verdict ? 'failure' : 'success';
  } catch {
    return 'failure';
  }
}

/** By name: what aborts with a reason of its own is no Error in every runtime. */
const isAbort = (error: unknown): boolean =>
  typeof error === 'object' && (error as { name?: unknown } | null)?.name === 'AbortError';
