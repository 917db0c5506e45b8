import { type TierRequest } from '../../requests/tier.js';
import { HttpException, Logger, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { of, throwError } from 'rxjs';
import { type Decision } from '../../limiter/decision.js';
import { RequestCounts } from '../../requests/request-counts.js';
import {
  RateLimitedException,
  RefusedException,
  type RefusedBody,
  type RejectionBody,
  type UnansweredBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import {
  CallerGone,
  GuardFailure,
  type Around,
  type HeaderNames,
  type RouteFacts,
  type SubstituteMark,
  type Substitutes,
  type Transport,
} from '../../requests/transport.js';
import { type RateLimitHeaders } from '../shared/rate-limit-headers.js';
import { isServerFault, markText, PayloadSubstitutes } from '../shared/substitutes.js';
import {
  CANCELLED,
  rejectionStatus,
  UNKNOWN,
  type GrpcMetadata,
  type GrpcOptions,
  type GrpcStatus,
  type MetadataClass,
} from './grpc-status.js';
import {
  addressOfPeer,
  callOf,
  hasOneRequest,
  headerOfCall,
  isPassThrough,
  valueOfMessage,
  type ServerCall,
  type ServerCallback,
} from './server-calls.js';

/** Calls of gRPC, of all four kinds; a stream is decided on once, when it begins. */
export class GrpcTransport implements Transport {
  private readonly logger = new Logger('RateLimitModule');
  private readonly streams = new HeldStreams();
  readonly counts = new RequestCounts();
  readonly substitutes: Substitutes;

  constructor(
    private readonly options: GrpcOptions,
    private readonly headers: RateLimitHeaders,
  ) {
    this.substitutes = new GrpcSubstitutes(options);
  }

  addressOf(context: ExecutionContext): string | undefined {
    const call = callOf(context);
    const address = addressOfPeer(call.getPeer());
    // Not a caller without an address, who would have a bucket of its own.
    if (address === undefined && call.cancelled) throw new CallerGone();
    return address;
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return headerOfCall(callOf(context), name);
  }

  userOf(context: ExecutionContext): unknown {
    return callOf(context).user;
  }

  /** Streams have no message yet when they are decided on. */
  valueAt(context: ExecutionContext, path: readonly string[]): unknown {
    const { request } = callOf(context) as { request?: unknown };
    return valueOfMessage(request, path);
  }

  methodOf(context: ExecutionContext): string {
    return callOf(context).getPath();
  }

  rawRequestOf(context: ExecutionContext): TierRequest {
    const call = callOf(context);
    const path = call.getPath();
    return { transport: 'grpc', method: path, path, headers: call.metadata.getMap() };
  }

  entersLine(): boolean {
    return true;
  }

  isGone(context: ExecutionContext): boolean {
    return callOf(context).cancelled;
  }

  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void {
    if (!this.options.metadata) return;
    const call = callOf(context);
    const metadata = new (metadataClassOf(call))();
    const setHeader = (name: string, value: string): void => metadata.set(name, value);
    this.headers.write({ setHeader }, decision, route);
    call.sendMetadata(metadata);
  }

  rejection(_context: ExecutionContext, decision: Decision): RateLimitedException {
    return new RateLimitedException(decision);
  }

  badRequest(_context: ExecutionContext, body: RefusedBody): Error {
    return new RefusedException(body);
  }

  answer({ body }: RateLimitedException | RefusedException, host: ArgumentsHost): unknown {
    return this.reject(host, body);
  }

  turnAway(body: UnavailableBody, host: ArgumentsHost): unknown {
    return this.reject(host, body);
  }

  answerFailure(cause: unknown, host: ArgumentsHost): unknown {
    return this.end(host, failureStatus(cause, this.logger));
  }

  whenAborted(context: ExecutionContext, callback: () => void): () => void {
    const call = callOf(context);
    // The event of a caller that has left already will not come again.
    if (call.cancelled) queueMicrotask(callback);
    call.on('cancelled', callback);
    return () => call.off('cancelled', callback);
  }

  around(context: ExecutionContext): Around | undefined {
    if (isPassThrough(context)) return withoutPlainErrors;
    const call = callOf(context);
    return call.pause === undefined ? undefined : (decide) => this.held(call, decide);
  }

  private reject(host: ArgumentsHost, body: RejectionBody): unknown {
    const status = statusOf(body, callOf(host), this.options);
    return isPassThrough(host) ? this.end(host, status) : throwError(() => status);
  }

  private held(call: ServerCall, decide: () => boolean | Promise<boolean>) {
    this.streams.hold(call);
    let answer: boolean | Promise<boolean> = false;
    try {
      answer = decide();
    } finally {
      if (!(answer instanceof Promise)) this.streams.release(call);
    }
    return answer instanceof Promise ? answer.finally(() => this.streams.release(call)) : answer;
  }

  /**
   * Nest does not look at the errors of a handler that has the bare call: they would end the process,
   * and the client would wait forever.
   */
  private end(host: ArgumentsHost, status: object): unknown {
    const callback = host.getArgByIndex<ServerCallback | undefined>(1);
    if (typeof callback === 'function') callback(status);
    else callOf(host).emit('error', status);
    return of(undefined);
  }
}

const DEGRADED = 'x-degraded';
/** UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE, DATA_LOSS. */
const FAULTS: ReadonlySet<number> = new Set([2, 4, 8, 13, 14, 15]);

/** Calls with one request, answered in the place of their handler. */
class GrpcSubstitutes extends PayloadSubstitutes {
  constructor(private readonly options: GrpcOptions) {
    super();
  }

  takes(host: ArgumentsHost): boolean {
    return hasOneRequest(host);
  }

  hasCredentials(context: ExecutionContext, known: HeaderNames): boolean {
    const call = callOf(context);
    for (const name in call.metadata.getMap()) {
      if (known.has(name)) return true;
    }
    return call.getAuthContext?.().sslPeerCertificate !== undefined;
  }

  trustedUserOf(context: ExecutionContext): unknown {
    return callOf(context).user;
  }

  varyingHeaderOf(context: ExecutionContext, name: string): string | undefined {
    return headerOfCall(callOf(context), name);
  }

  protected callOf(context: ExecutionContext): object {
    return callOf(context);
  }

  protected placeOf(context: ExecutionContext): string {
    return callOf(context).getPath();
  }

  isAborted(context: ExecutionContext): boolean {
    return callOf(context).cancelled;
  }

  isFailure(error: unknown): boolean {
    if (error instanceof HttpException) return isServerFault(error);
    const code = codeOf(error);
    return code === undefined || FAULTS.has(code);
  }

  mark(context: ExecutionContext, mark: SubstituteMark): void {
    const { level, ageMs } = mark;
    const age = level > 2 ? '' : `; age=${Math.max(0, Math.floor(ageMs / 1000))}`;
    addTrailer(callOf(context), DEGRADED, `${markText(mark)}${age}`);
  }

  answerWithout(body: UnansweredBody, host: ArgumentsHost): unknown {
    const status = statusOf(body, callOf(host), this.options);
    status.metadata.set(DEGRADED, `level=4; reason=${body.reason}`);
    return throwError(() => status);
  }
}

function statusOf(body: RejectionBody, call: ServerCall, { domain }: GrpcOptions): GrpcStatus {
  return rejectionStatus(body, metadataClassOf(call), { domain, deadline: call.getDeadline() });
}

/** The code of a status that a handler threw, or that Nest has wrapped into an RpcException. */
function codeOf(error: unknown): number | undefined {
  const { getError } = error as { getError?: () => unknown };
  const status = typeof getError === 'function' ? getError.call(error) : error;
  const code = (status as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}

interface EndingCall {
  sendStatus(status: { readonly metadata?: GrpcMetadata | null }): void;
}

/**
 * Puts something into the trailers of a call that ends well. Nest has no way to say them, so the
 * end of this one call is intercepted; where grpc-js does not show it, there is no trailer.
 */
function addTrailer(call: ServerCall, name: string, value: string): void {
  const { call: inner } = call as { call?: Partial<EndingCall> };
  const sendStatus = inner?.sendStatus;
  if (typeof sendStatus !== 'function') return;
  inner!.sendStatus = (status) => {
    const metadata = status.metadata ?? new (metadataClassOf(call))();
    metadata.set(name, value);
    sendStatus.call(inner, { ...status, metadata });
  };
}

function metadataClassOf({ metadata }: ServerCall): MetadataClass {
  return metadata.constructor as MetadataClass;
}

/** Leaves only errors that the filter catches. False, of a caller that is gone, would be another. */
function withoutPlainErrors(decide: () => boolean | Promise<boolean>): boolean | Promise<boolean> {
  let answer: boolean | Promise<boolean>;
  try {
    answer = decide();
  } catch (error) {
    throw caught(error);
  }
  if (!(answer instanceof Promise)) return passed(answer);
  return answer.then(passed, (error: unknown) => {
    throw caught(error);
  });
}

function passed(answer: boolean): true {
  if (!answer) throw new GuardFailure(undefined);
  return true;
}

function caught(error: unknown): Error {
  return error instanceof RateLimitedException || error instanceof RefusedException
    ? error
    : new GuardFailure(error);
}

/**
 * The status that Nest would make of an error: that of an RpcException is for the caller to see, any other is
 * for the log. Undefined stands for a caller that is gone.
 */
export function failureStatus(cause: unknown, logger: Pick<Logger, 'error'>): object {
  if (cause === undefined) return { code: CANCELLED, message: 'Cancelled' };
  const said = rpcErrorOf(cause);
  if (typeof said === 'object' && said !== null) return said;
  if (typeof said === 'string') return { code: UNKNOWN, message: said };
  logger.error(cause);
  return { code: UNKNOWN, message: 'Internal server error' };
}

/** Known by its method: the class belongs to a package that may not be there. */
function rpcErrorOf(cause: unknown): unknown {
  const { getError } = cause as { getError?: unknown };
  return typeof getError === 'function' ? getError.call(cause) : undefined;
}

/**
 * Stops request streams while they are decided on. Nest keeps messages that come before the handler
 * runs and replays them a turn later, and in between new ones overtake them (12) or the stream
 * never ends (11). None can while the call is paused.
 */
export class HeldStreams {
  private readonly holds = new WeakMap<ServerCall, number>();

  hold(call: ServerCall): void {
    this.holds.set(call, (this.holds.get(call) ?? 0) + 1);
    call.pause!();
  }

  /** Nest replays one turn after the handler was called; whatever comes later is in order. */
  release(call: ServerCall): void {
    setImmediate(() =>
      setImmediate(() => {
        const left = this.holds.get(call)! - 1;
        this.holds.set(call, left);
        if (left === 0) call.resume!();
      }),
    );
  }
}
