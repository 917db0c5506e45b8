import { type BreakerKind } from './breaker-state.js';
import { type BreakerMode } from './breaker.js';
import { DeadlineExceededError, ProtectionRejectedError, type RejectionReason } from './errors.js';

/** Counts of one resource since the start. */
export class ResourceCounts {
  calls = 0;
  succeeded = 0;
  failed = 0;
  /** Ended without a meaning for the resource: aborts, rejections of others. */
  neutral = 0;
  slow = 0;
  /** Deadlines that passed; the work may go on. */
  timedOut = 0;
  /** Callers that gave up. */
  aborted = 0;
  /** Work that ended after its caller had been given an answer. */
  late = 0;
  /** Slots that were held for too long. */
  held = 0;
  bigValues = 0;
  /** Errors that no caller saw: a fallback or another step answered. */
  fallbacks = 0;
  /** Turned away before they began: over the rate, no slot, waited too long, breaker open. */
  limited = 0;
  full = 0;
  waited = 0;
  open = 0;
  /** Held back, because the resource has refused calls. */
  throttled = 0;
}

/** Counts of the calls of a resource, by what became of them, and those under way. */
export interface ResourceStats extends Readonly<ResourceCounts> {
  readonly inFlight: number;
  readonly waiting: number;
  /** Of those in flight: work whose caller has been given an answer already. */
  readonly overdue: number;
  readonly breaker?: BreakerStats;
  readonly throttle?: ThrottleStats;
  /** With `limit: 'gradient'`: how many calls may be under way now. */
  readonly limit?: number;
}

/** Of the calls in its window. */
export interface ThrottleStats {
  readonly requests: number;
  /** Refused by the resource, or held back because of that. */
  readonly refused: number;
  /** The part of calls that is held back now. */
  readonly part: number;
}

/** The counts of a breaker, and its state. */
export interface BreakerStats {
  readonly state: BreakerKind;
  readonly mode: BreakerMode;
  readonly epoch: number;
  readonly openings: number;
  /** Calls that passed only because the breaker is observed. */
  readonly observed: number;
  /** The counts of its window now. */
  readonly calls: number;
  readonly failures: number;
  readonly slow: number;
}

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
