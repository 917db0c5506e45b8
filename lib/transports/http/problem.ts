import { type RejectionBody, type UnansweredBody } from '../../requests/rejections.js';
import { waitSeconds } from '../shared/requests.js';

/** Where the draft's problem types will be registered; they are not yet. */
export const PROBLEM_BASE = 'https://iana.org/assignments/http-problem-types#';

/** RFC 9457, and beside it what clients of Nest look at. */
export interface Problem {
  readonly statusCode: number;
  readonly message: string;
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  /** The wait of a caller over its limit. */
  readonly retryAfterMs?: number;
  readonly 'violated-policies'?: readonly string[];
}

export function problemOf(body: RejectionBody, base: string): Problem {
  const { statusCode: status, message, code, policy, retryAfterMs } = body;
  const isOwn = code === 'RATE_LIMITED';
  const isForGood = status === 400 || status === 413;
  const advice = retryAfterMs === undefined ? '' : ` Try again in ${waitSeconds(retryAfterMs)} s.`;
  return {
    // RFC 9457: no type of its own, so the status says it all.
    type: isForGood
      ? 'about:blank'
      : base + (isOwn ? 'quota-exceeded' : 'temporary-reduced-capacity'),
    title: message,
    status,
    detail: `${message}.${advice}`,
    statusCode: status,
    message,
    code,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(policy !== undefined && { 'violated-policies': [policy] }),
  };
}

export interface DegradedProblem extends Omit<Problem, 'violated-policies'> {
  readonly degraded: { readonly level: 4; readonly reason: string };
}

/** The problem of a request that gets no answer but a message. */
export function degradedProblemOf(body: UnansweredBody, base: string): DegradedProblem {
  const { statusCode: status, message, code, reason, retryAfterMs } = body;
  return {
    type: base + (status === 429 ? 'quota-exceeded' : 'temporary-reduced-capacity'),
    title: status === 429 ? 'Too many requests' : 'Temporarily reduced capacity',
    status,
    detail: message,
    statusCode: status,
    message,
    code,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    degraded: { level: 4, reason },
  };
}
