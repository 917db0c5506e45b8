import { HttpException } from '@nestjs/common';
import { CostExceedsLimitError, InvalidArgumentError, UnknownAppError } from '../common/errors.js';
import { type Decision } from '../limiter/decision.js';

/** The answer to a request that ends without one, on any transport. */
export interface RejectionBody {
  readonly status: 'error';
  readonly statusCode: 400 | 413 | 429 | 503 | 504;
  readonly code: string;
  readonly message: string;
  readonly policy?: string;
  /** Absent if it is not known. */
  readonly retryAfterMs?: number;
}

/** The answer where there is neither one of the handler nor a substitute. */
export interface UnansweredBody extends RejectionBody {
  readonly statusCode: 429 | 503;
  readonly reason: string;
}

/** The answer to a request that protection did not let through. Its resource is the operator's business only. */
export interface UnavailableBody extends RejectionBody {
  readonly statusCode: 503 | 504;
  readonly code: 'PROTECTION_REJECTED' | 'BULKHEAD_REJECTED' | 'BREAKER_OPEN' | 'DEADLINE_EXCEEDED';
}

/** The answer to a denied request. */
export interface RateLimitedBody extends RejectionBody {
  readonly statusCode: 429 | 503;
  readonly code: 'RATE_LIMITED' | 'OVERLOADED';
  /** Absent for quotas and the shared capacity: what apps are called is none of a caller's business. */
  readonly policy?: string;
  readonly retryAfterMs: number;
}

/** A request was denied. The filter answers it in the form of its transport. */
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

/** 429: this caller sends too much. 503: the service has too little for all. */
export function statusOf({ tier }: Pick<Decision, 'tier'>): 429 | 503 {
  return tier === 'cluster' || tier === 'node' ? 503 : 429;
}

function bodyOf(decision: Decision): RateLimitedBody {
  const { tier, policy, retryAfterMs } = decision;
  return statusOf(decision) === 503
    ? overloadedBody(retryAfterMs)
    : {
        status: 'error',
        statusCode: 429,
        code: 'RATE_LIMITED',
        message: 'Too many requests',
        ...(tier === 'policy' && { policy }),
        retryAfterMs,
      };
}

/** The decision of the line. No policy has denied, so none is asked how to say it. */
export function refusalByLine(retryAfterMs: number): Decision {
  return {
    ...{ allowed: false, remaining: 0, limit: 0, delayMs: 0, retryAfterMs, resetMs: retryAfterMs },
    ...{ timestampMs: Date.now(), policy: 'overload', tier: 'node', source: 'local' },
  };
}

/** The service has too little for all, or this process too little time. */
export function overloadedBody(retryAfterMs: number): RateLimitedBody {
  return {
    status: 'error',
    statusCode: 503,
    code: 'OVERLOADED',
    message: 'The service is at its capacity',
    retryAfterMs,
  };
}

/** The answer to a request for the impossible; trying again does not help. */
export interface RefusedBody extends RejectionBody {
  readonly statusCode: 400 | 413;
  readonly code: 'COST_OUT_OF_RANGE' | 'UNKNOWN_APP' | 'UNKNOWN_LIMIT';
}

/** A request asks for the impossible. The filter answers it in the form of its transport. */
export class RefusedException extends HttpException {
  constructor(readonly body: RefusedBody) {
    super(body, body.statusCode, { description: body.message });
    this.message = body.message;
  }
}

/** A function of the application that chooses the limits has failed, or its result is none. */
export class UnknownLimit extends Error {
  constructor(override readonly cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

/** The answer to an error that a caller can have brought about; undefined for every other error. */
export function badRequestOf(error: unknown): RefusedBody | undefined {
  if (error instanceof UnknownAppError) {
    return body(400, 'UNKNOWN_APP', 'The application is not known');
  }
  // A key that is empty or no text was cut out of what the caller sent.
  const hasNoKey = error instanceof InvalidArgumentError && error.field === 'key';
  if (hasNoKey || error instanceof UnknownLimit) {
    return body(400, 'UNKNOWN_LIMIT', 'It cannot be told which limits hold for this request');
  }
  if (error instanceof InvalidArgumentError && error.field === 'cost') {
    // Without the figure: that of a quota is none of a caller's business.
    const isTooMuch = error instanceof CostExceedsLimitError;
    const message = isTooMuch
      ? 'This request costs more than the limit ever allows'
      : 'It cannot be told what this request costs';
    return body(413, 'COST_OUT_OF_RANGE', message);
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
