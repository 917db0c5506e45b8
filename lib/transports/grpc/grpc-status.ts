import { type RejectionBody } from '../../requests/rejections.js';
import { statusDetails } from './status-details.js';
import { jitterUp } from '../../common/jitter.js';

/** How gRPC callers learn of their limits. The initial values are the defaults. */
export class GrpcOptions {
  /**
   * Sends `ratelimit` and `ratelimit-policy` as initial metadata. A call has only one: what the
   * handler sends with `sendMetadata` is then too late.
   */
  metadata = false;
  /** `ErrorInfo.domain` of denials: the service that the reason belongs to. */
  domain = 'nestjs-weir';
}

/** The metadata of grpc-js, which is no dependency: its class comes with the call. */
export interface GrpcMetadata {
  get(name: string): (string | Buffer)[];
  set(name: string, value: string | Buffer): void;
  getMap(): Readonly<Record<string, unknown>>;
}

export type MetadataClass = new () => GrpcMetadata;

/** The end of a call, as grpc-js takes it. */
export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
  readonly details: string;
  readonly metadata: GrpcMetadata;
}

export const CANCELLED = 1;
export const UNKNOWN = 2;
/** The request is impossible, now or later. */
export const INVALID_ARGUMENT = 3;
/** A resource of the call did not answer in time. */
export const DEADLINE_EXCEEDED = 4;
/** Too much from this caller. */
export const RESOURCE_EXHAUSTED = 8;
/** Too little for all; clients may try again by themselves. */
export const UNAVAILABLE = 14;

/** Tells retry policies of clients not to try again. */
const NO_RETRY = -1;

export const PUSHBACK = 'grpc-retry-pushback-ms';
export const RETRY_AFTER = 'retry-after-ms';
const DETAILS = 'grpc-status-details-bin';

export interface StatusSettings {
  /** ErrorInfo.domain: to whom the reason belongs. */
  readonly domain: string;
  /** When the caller stops waiting, on the wall clock. */
  readonly deadline: Date | number;
}

const CODES = {
  400: INVALID_ARGUMENT,
  413: INVALID_ARGUMENT,
  429: RESOURCE_EXHAUSTED,
  503: UNAVAILABLE,
  504: DEADLINE_EXCEEDED,
} as const;

/** The status of a rejected call, with everything that a client can act on in its trailers. */
export function rejectionStatus(
  body: RejectionBody,
  metadataClass: MetadataClass,
  { domain, deadline }: StatusSettings,
): GrpcStatus {
  const code = CODES[body.statusCode];
  const metadata = new metadataClass();
  if (body.retryAfterMs !== undefined) {
    const retryAfterMs = Math.max(1, Math.ceil(body.retryAfterMs));
    metadata.set(PUSHBACK, String(pushbackMs(code, retryAfterMs, deadline)));
    metadata.set(RETRY_AFTER, String(retryAfterMs));
  }
  metadata.set(DETAILS, statusDetails(code, body, domain));
  return { code, message: body.message, details: body.message, metadata };
}

function pushbackMs(code: number, retryAfterMs: number, deadline: Date | number): number {
  // Clients of an overloaded service must not come back all at once.
  const isSpread = code === UNAVAILABLE;
  const waitMs = Math.ceil(isSpread ? jitterUp(retryAfterMs, Math.random()) : retryAfterMs);
  return Date.now() + waitMs < Number(deadline) ? waitMs : NO_RETRY;
}
