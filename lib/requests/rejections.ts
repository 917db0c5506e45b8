import { HttpException } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';
import { type RejectionBody } from './rejection.js';

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
