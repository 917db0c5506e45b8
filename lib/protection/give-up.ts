import { DeadlineExceededError, ProtectionRejectedError, type RejectionReason } from './errors.js';
import { type ResourceCounts } from './resource-stats.js';

/** Why a caller is not answered by the work itself. */
export type GiveUp = RejectionReason | 'deadline' | 'caller' | 'error';

/** For an error that kept a call from beginning. */
export function whyOf(error: unknown, callerSignal: AbortSignal | undefined): GiveUp {
  if (callerSignal?.aborted && callerSignal.reason === error) return 'caller';
  if (error instanceof DeadlineExceededError) return 'deadline';
  return error instanceof ProtectionRejectedError ? error.reason : 'error';
}

export function countGiveUp(counts: ResourceCounts, why: GiveUp): void {
  if (why === 'deadline') counts.timedOut++;
  else if (why === 'caller') counts.aborted++;
  else if (why !== 'error') counts[why]++;
}
