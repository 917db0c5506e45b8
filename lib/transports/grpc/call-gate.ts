import { Metadata, type StatusObject } from '@grpc/grpc-js';
import { type Clock } from '../../common/clock.js';
import { isStrayPromise } from '../../common/promises.js';
import { type Decision } from '../../limiter/decision.js';
import { type Acquire, type AcquireRequest, type RateLimiter } from '../../limiter/rate-limiter.js';
import { RateLimitedException, type RejectionBody } from '../../requests/rejections.js';
import {
  GrpcOptions,
  PUSHBACK,
  rejectionStatus,
  RESOURCE_EXHAUSTED,
  RETRY_AFTER,
  UNAVAILABLE,
  UNKNOWN,
  type GrpcMetadata,
} from './grpc-status.js';
import { servedStatusOf } from './status-reader.js';

/** A call that is about to be made. */
export interface LimitedCall {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly metadata: Metadata;
  readonly deadline: Date | number;
}

/** Why a call does not go; undefined if it does. */
export type CallDenial = StatusObject | undefined;

/** Decides on one call before it is made, and learns from how it ended. */
export class CallGate {
  private request: Acquire | undefined;
  private decision: Decision | undefined;
  private name = '';

  constructor(
    private readonly limiter: Pick<RateLimiter, 'tryAcquire' | 'refund'>,
    private readonly what: (call: LimitedCall) => Acquire | undefined,
    private readonly pushbacks: Pushbacks | undefined,
    private readonly clock: Pick<Clock, 'after'>,
  ) {}

  /** Errors become a status: a call has no other way to tell. */
  ask(call: LimitedCall): CallDenial | Promise<CallDenial> {
    try {
      this.request = this.what(call);
      if (isStrayPromise(this.request))
        throw new TypeError('the charge of a call must not be async');
      this.name = nameOf(call.path, this.request);
      const pushback = this.pushbacks?.of(this.name);
      if (pushback !== undefined) return pushedBack(pushback);
      if (this.request === undefined) return undefined;
      const answer = this.limiter.tryAcquire(this.request);
      if (!(answer instanceof Promise)) return this.settle(answer, call);
      return answer.then((decision) => this.settle(decision, call)).catch(failed);
    } catch (error) {
      return failed(error);
    }
  }

  ended(status: StatusObject): void {
    this.pushbacks?.note(this.name, status);
  }

  /** The call was allowed, but is not made any more. Tokens that cannot be refunded are lost. */
  giveBack(): void {
    const { request, decision, limiter } = this;
    if (request === undefined) return;
    const refund = new Promise<void>((resolve) => resolve(limiter.refund(request, decision)));
    void refund.catch(() => undefined);
  }

  private settle(decision: Decision, { deadline }: LimitedCall): CallDenial | Promise<CallDenial> {
    const { allowed, delayMs } = decision;
    this.decision = decision;
    if (!allowed) return denied(decision);
    if (delayMs === 0) return undefined;
    if (Date.now() + delayMs < Number(deadline)) {
      return new Promise((resolve) => this.clock.after(delayMs, () => resolve(undefined)));
    }
    this.giveBack();
    return denied({ ...decision, retryAfterMs: delayMs });
  }
}

/** A server's pushback was meant for the calls that take the same tokens. */
function nameOf(path: string, request: Acquire | undefined): string {
  const all = request === undefined ? [] : Array.isArray(request) ? request : [request];
  const subjects = (all as AcquireRequest[]).map(({ app, policy, ...rest }) =>
    policy === undefined ? [app] : [policy, (rest as { key?: string }).key],
  );
  return `${path} ${JSON.stringify(subjects)}`;
}

function denied(decision: Decision): StatusObject {
  return notSent(new RateLimitedException(decision).body);
}

function pushedBack({ code, reason, leftMs }: Pushback): StatusObject {
  const status = notSent({
    status: 'error',
    statusCode: code === UNAVAILABLE ? 503 : 429,
    code: reason,
    message: `The server asked for ${leftMs} ms of patience`,
    retryAfterMs: leftMs,
  });
  // The server has added its jitter already.
  status.metadata.set(PUSHBACK, String(leftMs));
  return status;
}

function notSent(body: RejectionBody): StatusObject {
  const { domain } = new GrpcOptions();
  const status = rejectionStatus(body, Metadata, { domain, deadline: Infinity });
  const details = `${status.details}; this call was not sent`;
  return { code: status.code, details, metadata: status.metadata as Metadata };
}

export function failed(error: unknown): StatusObject {
  const why = error instanceof Error ? error.message : String(error);
  return {
    code: UNKNOWN,
    details: `The call could not be made: ${why}`,
    metadata: new Metadata(),
  };
}

/** A pushback that is forgotten costs one call that is refused again. */
const MOST_KEPT = 10_000;
/** Reasons come from the server, and so many are kept. */
const LONGEST_REASON = 64;

export interface Pushback {
  readonly code: number;
  /** The server's own, if it gave one: clients tell denials from failures by it. */
  readonly reason: string;
  readonly leftMs: number;
}

/** Remembers which calls a server does not want to see for a while. */
export class Pushbacks {
  private readonly known = new Map<string, Omit<Pushback, 'leftMs'> & { untilMicros: number }>();

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly longestMs: number,
  ) {}

  /** An absurd pushback must not silence a client for good. */
  note(call: string, { code, metadata }: { code: number; metadata: GrpcMetadata }): void {
    if (code !== RESOURCE_EXHAUSTED && code !== UNAVAILABLE) return;
    // A negative pushback means "do not retry this one", and means nothing for others.
    const waitMs = millisecondsIn(metadata, PUSHBACK) ?? millisecondsIn(metadata, RETRY_AFTER);
    if (waitMs === undefined) return;
    const untilMicros = this.clock.now() + Math.min(waitMs, this.longestMs) * 1000;
    this.known.delete(call);
    this.known.set(call, { code, reason: reasonOf(code, metadata), untilMicros });
    if (this.known.size > MOST_KEPT) this.known.delete(this.known.keys().next().value!);
  }

  of(call: string): Pushback | undefined {
    const pushback = this.known.get(call);
    if (pushback === undefined) return undefined;
    const leftMs = Math.ceil((pushback.untilMicros - this.clock.now()) / 1000);
    if (leftMs > 0) return { code: pushback.code, reason: pushback.reason, leftMs };
    this.known.delete(call);
    return undefined;
  }
}

function reasonOf(code: number, metadata: GrpcMetadata): string {
  const said = servedStatusOf({ code, metadata })?.reason;
  if (said !== undefined && said.length <= LONGEST_REASON) return said;
  return code === UNAVAILABLE ? 'OVERLOADED' : 'RATE_LIMITED';
}

function millisecondsIn(metadata: GrpcMetadata, name: string): number | undefined {
  const said = String(metadata.get(name)[0]);
  return /^\d{1,15}$/.test(said) && Number(said) > 0 ? Number(said) : undefined;
}
