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
