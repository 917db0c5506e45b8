import { Metadata } from '@grpc/grpc-js';
import { RpcException } from '@nestjs/microservices';
import {
  catchError,
  concatMap,
  defer,
  delay,
  EMPTY,
  filter,
  finalize,
  from,
  map,
  mergeMap,
  of,
  throwError,
  type MonoTypeOperatorFunction,
  type Observable,
} from 'rxjs';
import { tell } from '../../common/event-hub.js';
import { isStrayPromise } from '../../common/promises.js';
import { oneOf, rejectUnknown, wholeAbove0, withoutUndefined } from '../../common/validate.js';
import {
  RateLimitedException,
  UnknownLimit,
  badRequestOf,
  type RefusedBody,
} from '../../requests/rejections.js';
import { type Decision } from '../../limiter/decision.js';
import { type Acquire, type RateLimiter } from '../../limiter/rate-limiter.js';
import { GrpcOptions, rejectionStatus } from './grpc-status.js';

/** The charge of a message; undefined if it is free. */
export type MessageCharge<T> = (message: T) => Acquire | undefined;

/** As much of a call of grpc-js as it takes to hold its sender back. */
export interface PausableCall {
  pause(): unknown;
  resume(): unknown;
}

/** The fate of messages that are too many. The initial values are the defaults. */
export class LimitStreamOptions<T = unknown> {
  /**
   * `'end'`: the stream ends with status 8, or 14, and with 3 for a message that costs what none may;
   * `'drop'`: the message is left out.
   */
  onLimit: 'end' | 'drop' = 'end';
  /**
   * How many messages may wait, for a shaper or for the store. Beyond that there are too many, and it
   * is as `onLimit` says.
   */
  maxWaiting = 1000;
  /** The call that the messages come from: it is paused before too many of them wait. */
  call?: PausableCall;
  /** Told of each message that was left out; `retryAfterMs` is Infinity if it could never pass. */
  onDrop?: (message: T, decision: Decision) => void;
}

/** A stream had more messages than it may have. gRPC clients see the same as for a denied call. */
export class LimitedStreamException extends RpcException {
  constructor(readonly decision: Decision) {
    const { body } = new RateLimitedException(decision);
    const { domain } = new GrpcOptions();
    super(rejectionStatus(body, Metadata, { domain, deadline: Infinity }));
  }
}

/** A message of a stream asks for the impossible. gRPC clients see the same as for such a call. */
export class RefusedStreamException extends RpcException {
  constructor(readonly body: RefusedBody) {
    const { domain } = new GrpcOptions();
    super(rejectionStatus(body, Metadata, { domain, deadline: Infinity }));
  }
}

/**
 * Limits a stream message by message; `@RateLimit` on the handler charges once, when it begins.
 * Messages keep their order, also where the limiter has to ask its store.
 */
export function limitStream<T>(
  limiter: Pick<RateLimiter, 'tryAcquire'>,
  what: Acquire | MessageCharge<T>,
  options: Partial<LimitStreamOptions<T>> = {},
): MonoTypeOperatorFunction<T> {
  rejectUnknown('limitStream', options, ['onLimit', 'maxWaiting', 'call', 'onDrop']);
  const settings = Object.assign(new LimitStreamOptions<T>(), withoutUndefined(options));
  const { onLimit, onDrop, maxWaiting, call } = settings;
  wholeAbove0('limitStream.maxWaiting', maxWaiting);
  oneOf('limitStream.onLimit', onLimit, ['end', 'drop']);
  const dropped = (message: T, decision: Decision): void => {
    if (onDrop !== undefined) tell(onDrop, message, decision);
  };
  const judge = (message: T, decision: Decision): Observable<T> => {
    const { allowed, delayMs } = decision;
    if (allowed) return delayMs === 0 ? of(message) : of(message).pipe(delay(delayMs));
    if (onLimit === 'end') return throwError(() => new LimitedStreamException(decision));
    dropped(message, decision);
    return EMPTY;
  };
  const failed = (message: T, error: unknown): Observable<T> => {
    // A charge that is the same for all messages was not chosen by their sender.
    const body = typeof what === 'function' ? badRequestOf(error) : undefined;
    if (body === undefined) return throwError(() => error);
    if (onLimit === 'end') return throwError(() => new RefusedStreamException(body));
    dropped(message, IMPOSSIBLE);
    return EMPTY;
  };
  const decide = (message: T): Observable<T> => {
    let answer: Decision | Promise<Decision>;
    try {
      const request = typeof what === 'function' ? chargeOf(what, message) : what;
      if (request === undefined) return of(message);
      answer = limiter.tryAcquire(request);
    } catch (error) {
      return failed(message, error);
    }
    if (!(answer instanceof Promise)) return judge(message, answer);
    return from(answer).pipe(
      // Only of the limiter: not what a judgement throws.
      map((decision) => judge(message, decision)),
      catchError((error: unknown) => of(failed(message, error))),
      mergeMap((judged) => judged),
    );
  };
  // Messages wait for those of their own stream only.
  return (source) =>
    defer(() => {
      const waiting = new WaitingMessages(maxWaiting, call);
      return source.pipe(
        filter((message) => {
          if (waiting.join(message)) return true;
          if (onLimit === 'end') throw new LimitedStreamException(NO_ROOM);
          dropped(message, NO_ROOM);
          return false;
        }),
        concatMap((message) => decide(message).pipe(finalize(() => waiting.leave()))),
      );
    });
}

/** A function of the application that fails, or gives a promise, does so because of what the message says. */
function chargeOf<T>(what: MessageCharge<T>, message: T): Acquire | undefined {
  let charge: Acquire | undefined;
  try {
    charge = what(message);
  } catch (error) {
    throw new UnknownLimit(error);
  }
  if (isStrayPromise(charge)) throw new UnknownLimit('the charge of a message must not be async');
  return charge;
}

/** The decision on a message that there was no room for: the limiter was not called. */
const NO_ROOM: Decision = {
  ...{ allowed: false, remaining: 0, limit: 0, delayMs: 0, retryAfterMs: 1000, resetMs: 1000 },
  ...{ timestampMs: 0, policy: 'stream', tier: 'local', source: 'local' },
};

/** And of a message that no limit could ever let pass. */
const IMPOSSIBLE: Decision = { ...NO_ROOM, retryAfterMs: Infinity };

/** A sender is held back when so many wait: messages may be of megabytes, and more at once brings nothing. */
const MOST_BEFORE_PAUSE = 16;
/** Those of a sender that cannot be held back are as large together, roughly. */
const MOST_BYTES = 16 * 1024 * 1024;

/** The messages of one stream that wait, which are bounded; the sender is held back before that. */
class WaitingMessages {
  private readonly pauseAbove: number;
  private length = 0;
  /** Of those that found others waiting, in their order; they are let go in the same. */
  private readonly sizes: number[] = [];
  private bytes = 0;
  private isPaused = false;

  constructor(
    private readonly longest: number,
    private readonly call: PausableCall | undefined,
  ) {
    this.pauseAbove = Math.min(longest / 4, MOST_BEFORE_PAUSE);
  }

  join(message: unknown): boolean {
    if (this.length >= this.longest || !this.hasRoomFor(message)) return false;
    this.length++;
    // Some are on their way already when a call is paused.
    if (this.call !== undefined && !this.isPaused && this.length > this.pauseAbove) {
      this.isPaused = true;
      this.call.pause();
    }
    return true;
  }

  leave(): void {
    this.length--;
    this.bytes -= this.sizes.shift()!;
    if (!this.isPaused || this.length > this.pauseAbove / 2) return;
    this.isPaused = false;
    this.call!.resume();
  }

  /** Most find nobody waiting, and are not measured. */
  private hasRoomFor(message: unknown): boolean {
    const size = this.length === 0 || this.call !== undefined ? 0 : roughBytesOf(message);
    if (this.bytes + size > MOST_BYTES) return false;
    this.sizes.push(size);
    this.bytes += size;
    return true;
  }
}

/** Of each value beside its text or its bytes. */
const VALUE_BYTES = 16;

function roughBytesOf(message: unknown): number {
  const open: unknown[] = [message];
  let bytes = 0;
  while (open.length > 0 && bytes <= MOST_BYTES) {
    const value = open.pop();
    bytes += VALUE_BYTES;
    if (typeof value === 'string') bytes += value.length;
    else if (ArrayBuffer.isView(value)) bytes += value.byteLength;
    else if (typeof value === 'object' && value !== null)
      for (const one of Object.values(value)) open.push(one);
  }
  return bytes;
}
