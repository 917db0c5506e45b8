import { RETRY_AFTER } from './grpc-status.js';

/** The error of a denied call at a client of gRPC; grpc-js calls it a ServiceError. */
export interface GrpcRateLimitError extends GrpcCallError {
  /** 8, RESOURCE_EXHAUSTED, for a limit of the caller's; 14, UNAVAILABLE, where the service is at its capacity. */
  readonly code: 8 | 14;
}

/** The error of a call that protection turned away (14), or whose resource was too slow (4). */
export interface GrpcUnavailableError extends GrpcCallError {
  readonly code: 4 | 14;
}

/** The error of a call, as grpc-js makes it. */
export interface GrpcCallError {
  readonly details: string;
  readonly metadata: { get(name: string): (string | Buffer)[] };
  /** In the metadata; `retryAfterMsOf` reads it. */
  readonly retryAfterMs?: undefined;
}

/** The trailers of a call that a service of this library has ended. */
export interface ServedStatus {
  /** `RATE_LIMITED`, `OVERLOADED`, `BREAKER_OPEN`…, as in the answers of other transports. */
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
}

const DETAILS = 'grpc-status-details-bin';
const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';

/** Undefined for errors of another kind, and for those of services that say nothing of the kind. */
export function servedStatusOf(error: unknown): ServedStatus | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, metadata } = error as Partial<GrpcRateLimitError>;
  if (typeof code !== 'number' || typeof metadata?.get !== 'function') return undefined;
  const [details] = metadata.get(DETAILS);
  const reason = Buffer.isBuffer(details) ? reasonIn(details) : undefined;
  if (reason === undefined) return undefined;
  const retryAfterMs = Number(metadata.get(RETRY_AFTER)[0] ?? NaN);
  return { reason, retryAfterMs: retryAfterMs >= 0 ? retryAfterMs : undefined };
}

/** The reason of the ErrorInfo among the details of a google.rpc.Status. */
function reasonIn(status: Buffer): string | undefined {
  for (const detail of fieldsOf(status, 3)) {
    const [type] = fieldsOf(detail, 1);
    const [info] = fieldsOf(detail, 2);
    if (type?.toString() === ERROR_INFO && info) return fieldsOf(info, 1)[0]?.toString();
  }
  return undefined;
}

/** Texts and messages of a field; of what is no message of protocol buffers, those before the fault. */
function fieldsOf(message: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  while (at < message.length) {
    const [tag, afterTag] = varintAt(message, at);
    const [value, afterValue] = varintAt(message, afterTag);
    at = afterValue;
    // Numbers and texts are all that a status has.
    if (tag % 8 === 0) continue;
    if (tag % 8 !== 2 || at + value > message.length) return found;
    if (Math.floor(tag / 8) === wanted) found.push(message.subarray(at, at + value));
    at += value;
  }
  return found;
}

/** Seven bits in each byte, the lowest first; and where the next value begins. */
function varintAt(message: Buffer, from: number): [value: number, end: number] {
  let value = 0;
  let scale = 1;
  let at = from;
  while (at < message.length) {
    const byte = message[at++]!;
    value += (byte % 0x80) * scale;
    scale *= 0x80;
    if (byte < 0x80) break;
  }
  return [value, at];
}
