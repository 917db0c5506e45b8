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
import { oneOf, rejectUnknown, wholeAbove0, withoutUndefined } from '../../common/validate.js';
import { RateLimitedException, badRequestOf, type RefusedBody } from '../../requests/rejections.js';
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
  const judge = (message: T, decision: Decision): Observable<T> => {
    const { allowed, delayMs } = decision;
    if (allowed) return delayMs === 0 ? of(message) : of(message).pipe(delay(delayMs));
    if (onLimit === 'end') return throwError(() => new LimitedStreamException(decision));
    onDrop?.(message, decision);
    return EMPTY;
  };
  const failed = (message: T, error: unknown): Observable<T> => {
    // A charge that is the same for all messages was not chosen by their sender.
    const body = typeof what === 'function' ? badRequestOf(error) : undefined;
    if (body === undefined) return throwError(() => error);
    if (onLimit === 'end') return throwError(() => new RefusedStreamException(body));
    onDrop?.(message, IMPOSSIBLE);
    return EMPTY;
  };
  const decide = (message: T): Observable<T> => {
    const request = typeof what === 'function' ? what(message) : what;
    if (request === undefined) return of(message);
    let answer: Decision | Promise<Decision>;
    try {
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
          if (waiting.join()) return true;
          if (onLimit === 'end') throw new LimitedStreamException(NO_ROOM);
          onDrop?.(message, NO_ROOM);
          return false;
        }),
        concatMap((message) => decide(message).pipe(finalize(() => waiting.leave()))),
      );
    });
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

/** The messages of one stream that wait, which are bounded; the sender is held back before that. */
class WaitingMessages {
  private readonly pauseAbove: number;
  private length = 0;
  private isPaused = false;

  constructor(
    private readonly longest: number,
    private readonly call: PausableCall | undefined,
  ) {
    this.pauseAbove = Math.min(longest / 4, MOST_BEFORE_PAUSE);
  }

  join(): boolean {
    if (this.length >= this.longest) return false;
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
    if (!this.isPaused || this.length > this.pauseAbove / 2) return;
    this.isPaused = false;
    this.call!.resume();
  }
}
