/** The answer to a caller, in the same form for every transport. */
export interface Outcome {
  readonly allowed: boolean;
  /** Of a call that passed. */
  readonly text?: string;
  /** Of a call that was over its limit: whose rule it was, and when to come back. */
  readonly policy?: string;
  readonly retryAfterMs?: number;
  /** Of a call that protection turned away, or the line: why. */
  readonly unavailable?: string;
  /** Of a call that failed for another reason. */
  readonly refusal?: string;
}

/** The details of a failure that transports tell, each in a place of its own. */
export interface Failure {
  readonly code?: string;
  readonly policy?: string;
  readonly retryAfterMs?: number;
  readonly message?: string;
}

export const passed = (text: string): Outcome => ({ allowed: true, text });

export function failed({ code, policy, retryAfterMs, message }: Failure): Outcome {
  if (code === 'RATE_LIMITED') return { allowed: false, policy, retryAfterMs };
  if (code === 'BREAKER_OPEN' || code === 'OVERLOADED')
    return { allowed: false, unavailable: code, retryAfterMs };
  return { allowed: false, refusal: message };
}
