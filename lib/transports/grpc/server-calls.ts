import { isIP } from 'node:net';
import { type ArgumentsHost } from '@nestjs/common';
import { grpcCallOf, type GrpcCall } from '../../requests/subject.js';
import { ownValueAt } from '../shared/requests.js';
import { type GrpcMetadata } from './grpc-status.js';

/** A call of grpc-js, as far as limits look at it. */
export interface ServerCall extends GrpcCall {
  readonly metadata: GrpcMetadata;
  readonly cancelled: boolean;
  /** The caller, as a guard or an interceptor of the application has found it. */
  readonly user?: unknown;
  /** Of TLS; the certificate only of clients that have shown one that holds. */
  getAuthContext?(): { readonly sslPeerCertificate?: unknown };
  getDeadline(): Date | number;
  sendMetadata(metadata: GrpcMetadata): void;
  on(event: 'cancelled', listener: () => void): unknown;
  off(event: 'cancelled', listener: () => void): unknown;
  emit(event: 'error', error: unknown): boolean;
  /** Only of calls whose requests are a stream. */
  pause?(): unknown;
  resume?(): unknown;
}

/** Answers a call by itself, if that has one answer. */
export type ServerCallback = (error: object) => void;

export function callOf(host: ArgumentsHost): ServerCall {
  return grpcCallOf(host.getArgs<unknown[]>()) as ServerCall;
}

/** Where the handler is given the bare call, and Nest takes no part in the answer. */
export function isPassThrough(host: ArgumentsHost): boolean {
  return host.getArgByIndex(0) === callOf(host);
}

/** False for streams of requests, and where Nest takes no part. */
export function hasOneRequest(host: ArgumentsHost): boolean {
  return !isPassThrough(host) && callOf(host).pause === undefined;
}

/**
 * The address of a peer, as grpc-js has it: `203.0.113.7:50123`, and `2001:db8::1:50123`
 * without brackets, where only the last group is known to be the port.
 */
export function addressOfPeer(peer: string): string | undefined {
  const text = peer.replace(/^ipv[46]:/, '');
  const bracketed = /^\[([^\]]+)\]/.exec(text)?.[1];
  const withoutPort = bracketed ?? text.replace(/:\d{1,5}$/, '');
  if (isIP(withoutPort) !== 0) return withoutPort;
  return isIP(text) === 0 ? undefined : text;
}

/** A header that was sent several times counts as one, in the order they came. Bytes become base64. */
export function headerOfCall({ metadata }: ServerCall, name: string): string | undefined {
  const values = metadata.get(name);
  if (values.length === 0) return undefined;
  return values
    .map((value) => (Buffer.isBuffer(value) ? value.toString('base64') : value))
    .join(',');
}

/** A value of the message by path, of own properties only. The message itself may be named first. */
export function valueOfMessage(message: unknown, path: readonly string[]): unknown {
  return plainValue(ownValueAt(message, path[0] === 'request' ? path.slice(1) : path));
}

/** proto-loader gives 64-bit numbers as objects, and bytes as buffers, unless its options differ. */
function plainValue(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  const isLong = (value as { __isLong__?: unknown } | null | undefined)?.__isLong__ === true;
  return isLong ? String(value) : value;
}
