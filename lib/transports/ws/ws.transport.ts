import { type TierRequest } from '../../requests/tier.js';
import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../../limiter/decision.js';
import { keepPrimitiveDecision } from '../../limits/charges.js';
import { RequestCounts } from '../../requests/request-counts.js';
import {
  RateLimitedException,
  RefusedException,
  statusOf,
  type RateLimitedBody,
  type RefusedBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import { CallerGone, type Transport } from '../../requests/transport.js';
import { clientBehind, headerOf, valueAt, elementOf, type TrustProxy } from '../shared/requests.js';
import { closeSocket, isClosed, sendEvent, whenGone, type Socket } from './sockets.js';
import { SOCKET_MESSAGE } from '../../requests/nest-metadata.js';

/** The event that a client gets, as Nest sends it for other exceptions, with more to it. */
export interface WsRejection {
  readonly status: 'error';
  readonly code: RateLimitedBody['code'] | RefusedBody['code'] | UnavailableBody['code'];
  readonly message: string;
  readonly policy?: string;
  /** Absent if it is not known. */
  readonly retryAfterMs?: number;
  /** Without the payload, which Nest would send back: a flood must not be answered by one. */
  readonly cause: { readonly pattern: unknown };
}

/** Messages to gateways, of socket.io and of `ws`. */
export class WsTransport implements Transport {
  readonly counts = new RequestCounts();

  constructor(
    private readonly violations: Violations,
    private readonly trustProxy: () => TrustProxy | undefined,
  ) {}

  addressOf(context: ExecutionContext): string | undefined {
    const socket = socketOf(context);
    const { handshake, request, _socket } = socket;
    const peer = handshake?.address ?? request?.socket?.remoteAddress ?? _socket?.remoteAddress;
    // Not a caller without an address, who would have a bucket of its own.
    if (peer === undefined && isClosed(socket)) throw new CallerGone();
    const trust = this.trustProxy();
    if (peer === undefined || trust === undefined) return peer;
    return clientBehind(peer, this.headerOf(context, 'x-forwarded-for'), trust);
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    const { handshake, request } = socketOf(context);
    const headers = handshake?.headers ?? request?.headers;
    return headers && headerOf({ headers }, name);
  }

  userOf(context: ExecutionContext): unknown {
    const { data, user, request } = socketOf(context);
    return data?.user ?? user ?? request?.user;
  }

  /** `data.room` of the payload, `handshake.query.v`, `client.data.tenant`. */
  valueAt(context: ExecutionContext, path: readonly string[]): unknown {
    const [client, data] = context.getArgs<[Socket, unknown]>();
    return valueAt({ data, client, handshake: client.handshake }, path);
  }

  elementAt(context: ExecutionContext, index: number): unknown {
    return elementOf(context.getArgByIndex<unknown>(1), index);
  }

  methodOf(context: ExecutionContext): string {
    const event: unknown = Reflect.getMetadata(SOCKET_MESSAGE, context.getHandler());
    return typeof event === 'string' ? event : (JSON.stringify(event) ?? SOCKET_MESSAGE);
  }

  rawRequestOf(context: ExecutionContext): TierRequest {
    const event = this.methodOf(context);
    const { handshake, request } = socketOf(context);
    const headers = handshake?.headers ?? request?.headers ?? {};
    return { transport: 'ws', method: event, path: event, headers };
  }

  entersLine(): boolean {
    return true;
  }

  isGone(context: ExecutionContext): boolean {
    return isClosed(socketOf(context));
  }

  decided(context: ExecutionContext, decision: Decision): void {
    keepPrimitiveDecision(context, decision);
    this.violations.decided(socketOf(context), decision);
  }

  rejection(_context: ExecutionContext, decision: Decision): RateLimitedException {
    return new RateLimitedException(decision);
  }

  badRequest(_context: ExecutionContext, body: RefusedBody): Error {
    return new RefusedException(body);
  }

  answer({ body }: RateLimitedException | RefusedException, host: ArgumentsHost): void {
    reject(body, host);
  }

  turnAway(body: UnavailableBody, host: ArgumentsHost): void {
    reject(body, host);
  }

  whenAborted(context: ExecutionContext, callback: () => void): () => void {
    return whenGone(socketOf(context), callback);
  }
}

/** A client that waits for an acknowledgement gets it; Nest would leave it waiting. */
function reject(body: RateLimitedBody | RefusedBody | UnavailableBody, host: ArgumentsHost): void {
  const [client, , ...rest] = host.getArgs<[Socket, unknown, ...unknown[]]>();
  const { status, code, message, policy, retryAfterMs } = body;
  const rejection: WsRejection = {
    status,
    code,
    message,
    ...(policy !== undefined && { policy }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: { pattern: rest.at(-1) },
  };
  sendEvent(client, 'exception', rejection);
  const acknowledge = rest.find((part) => typeof part === 'function');
  acknowledge?.(rejection);
}

function socketOf(context: ExecutionContext): Socket {
  return context.getArgByIndex<Socket>(0);
}

/** How gateways treat their clients. The initial values are the defaults. */
export class WebsocketOptions {
  /** After that many denials in a row a client is disconnected; without a number never. */
  closeAfter = Infinity;
}

/** RFC 6455: the client does what it must not. */
const POLICY_VIOLATION = 1008;
/** The registry of close codes: the service is at its capacity. */
const TRY_AGAIN_LATER = 1013;

/** Counts denials in a row, and ends the connection of clients that do not take no for an answer. */
export class Violations {
  private readonly inARow = new WeakMap<Socket, number>();

  constructor(private readonly closeAfter: number) {}

  decided(socket: Socket, decision: Decision): void {
    if (this.closeAfter === Infinity) return;
    if (decision.allowed) {
      this.inARow.delete(socket);
      return;
    }
    const count = (this.inARow.get(socket) ?? 0) + 1;
    this.inARow.set(socket, count);
    if (count !== this.closeAfter) return;
    const [code, reason] =
      statusOf(decision) === 503
        ? [TRY_AGAIN_LATER, 'OVERLOADED']
        : [POLICY_VIOLATION, 'RATE_LIMITED'];
    // The filter has not answered yet, and a client should get the reason before the end.
    setImmediate(closeSocket, socket, code, reason);
  }
}
