import { HttpException } from '@nestjs/common';
import { InvalidArgumentError, UnknownAppError } from '../common/errors.js';
import { type Decision } from '../limiter/decision.js';

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

/** What a caller is told that was denied. */
export interface RateLimitedBody extends RejectionBody {
  readonly statusCode: 429 | 503;
  readonly code: 'RATE_LIMITED' | 'OVERLOADED';
  /** Absent for quotas and the shared capacity: what apps are called is none of a caller's business. */
  readonly policy?: string;
  readonly retryAfterMs: number;
}

/** A request was denied. The transport's filter puts it into the transport's words. */
export class RateLimitedException extends HttpException {
  readonly body: RateLimitedBody;

  constructor(readonly decision: Decision) {
    const body = bodyOf(decision);
    super(body, body.statusCode, { description: body.message });
    this.body = body;
    this.message = body.message;
  }

  get retryAfterMs(): number {
    return this.decision.retryAfterMs;
  }
}

/** Too much from this caller is its own affair; too little for all is the service's. */
function bodyOf({ tier, policy, retryAfterMs }: Decision): RateLimitedBody {
  return tier === 'cluster'
    ? {
        status: 'error',
        statusCode: 503,
        code: 'OVERLOADED',
        message: 'The service is at its capacity',
        retryAfterMs,
      }
    : {
        status: 'error',
        statusCode: 429,
        code: 'RATE_LIMITED',
        message: 'Too many requests',
        ...(tier === 'policy' && { policy }),
        retryAfterMs,
      };
}

/** What a caller is told whose request asks for what cannot be; trying again does not help. */
export interface RefusedBody extends RejectionBody {
  readonly statusCode: 400 | 413;
  readonly code: 'COST_OUT_OF_RANGE' | 'UNKNOWN_APP' | 'UNKNOWN_LIMIT';
}

/** A request was refused, not because there were too many. The transport puts it into its words. */
export class RefusedException extends HttpException {
  constructor(readonly body: RefusedBody) {
    super(body, body.statusCode, { description: body.message });
    this.message = body.message;
  }
}

/** A function of the application that says which limits hold has failed, or has said nonsense. */
export class UnknownLimit extends Error {
  constructor(override readonly cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

/** What a caller can have brought about is its own fault; undefined for everything else. */
export function refusalOf(error: unknown): RefusedBody | undefined {
  if (error instanceof UnknownAppError) {
    return body(400, 'UNKNOWN_APP', 'The application is not known');
  }
  // A key that is empty or no text was cut out of what the caller sent.
  const hasNoKey = error instanceof InvalidArgumentError && error.field === 'key';
  if (hasNoKey || error instanceof UnknownLimit) {
    return body(400, 'UNKNOWN_LIMIT', 'It cannot be told which limits hold for this request');
  }
  if (error instanceof InvalidArgumentError && error.field === 'cost') {
    return body(413, 'COST_OUT_OF_RANGE', 'The request costs what no request may cost');
  }
  return undefined;
}

function body(
  statusCode: RefusedBody['statusCode'],
  code: RefusedBody['code'],
  message: string,
): RefusedBody {
  return { status: 'error', statusCode, code, message };
}
