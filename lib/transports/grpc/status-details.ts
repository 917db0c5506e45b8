import { type RejectionBody } from '../../requests/rejections.js';

const TYPE_PREFIX = 'type.googleapis.com/google.rpc.';

/**
 * The google.rpc.Status that clients of many languages know how to read: when to come back
 * (RetryInfo, where that is known), whose limit it was (QuotaFailure, for the caller's own), and a reason to switch on
 * (ErrorInfo).
 */
export function statusDetails(code: number, body: RejectionBody, domain: string): Buffer {
  const status = new ProtobufWriter().uint(1, code).string(2, body.message);
  const { retryAfterMs } = body;
  if (retryAfterMs !== undefined) status.message(3, any('RetryInfo', retryInfo(retryAfterMs)));
  if (body.policy !== undefined) status.message(3, any('QuotaFailure', quotaFailure(body)));
  return status.message(3, any('ErrorInfo', errorInfo(body, domain))).finish();
}

function any(type: string, value: ProtobufWriter): ProtobufWriter {
  return new ProtobufWriter().string(1, TYPE_PREFIX + type).bytes(2, value.finish());
}

function retryInfo(retryAfterMs: number): ProtobufWriter {
  const seconds = Math.floor(retryAfterMs / 1000);
  const nanos = Math.round((retryAfterMs - seconds * 1000) * 1e6);
  return new ProtobufWriter().message(1, new ProtobufWriter().uint(1, seconds).uint(2, nanos));
}

function quotaFailure({ policy, message }: RejectionBody): ProtobufWriter {
  const violation = new ProtobufWriter().string(1, `policy:${policy}`).string(2, message);
  return new ProtobufWriter().message(1, violation);
}

function errorInfo({ code, policy }: RejectionBody, domain: string): ProtobufWriter {
  const info = new ProtobufWriter().string(1, code).string(2, domain);
  if (policy === undefined) return info;
  return info.message(3, new ProtobufWriter().string(1, 'policy').string(2, policy));
}

const VARINT = 0;
const LENGTH_DELIMITED = 2;

/**
 * Writes messages of protocol buffers: as much of the format as the details of a status need. A
 * package that does all of it would be larger than this library.
 */
export class ProtobufWriter {
  private readonly parts: Buffer[] = [];

  /** A number from 0 on; 0 is what a field has that is not written. */
  uint(field: number, value: number): this {
    if (value !== 0) this.parts.push(varint(field * 8 + VARINT), varint(value));
    return this;
  }

  string(field: number, value: string): this {
    return value === '' ? this : this.bytes(field, Buffer.from(value, 'utf8'));
  }

  message(field: number, value: ProtobufWriter): this {
    return this.bytes(field, value.finish());
  }

  bytes(field: number, value: Buffer): this {
    this.parts.push(varint(field * 8 + LENGTH_DELIMITED), varint(value.length), value);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.parts);
  }
}

/** Seven bits in each byte, the lowest first. By division: shifts would cut numbers to 32 bits. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
