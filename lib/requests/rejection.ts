/** What a caller is told on any transport whose request ends without an answer. */
export interface RejectionBody {
  readonly status: 'error';
  readonly statusCode: 400 | 413 | 429 | 503 | 504;
  readonly code: string;
  readonly message: string;
  readonly policy?: string;
  /** Absent if nobody knows. */
  readonly retryAfterMs?: number;
}

/** What callers are told if protection did not let a request through. Its resource is the operator's business only. */
export interface UnavailableBody extends RejectionBody {
  readonly statusCode: 503 | 504;
  readonly code: 'PROTECTION_REJECTED' | 'BULKHEAD_REJECTED' | 'BREAKER_OPEN' | 'DEADLINE_EXCEEDED';
}
