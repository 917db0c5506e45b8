import { Metadata } from '@grpc/grpc-js';
import { RpcException } from '@nestjs/microservices';
import {
  concatMap,
  delay,
  EMPTY,
  from,
  mergeMap,
  of,
  throwError,
  type MonoTypeOperatorFunction,
  type Observable,
} from 'rxjs';
import { oneOf, rejectUnknown } from '../../common/validate.js';
import { RateLimitedException } from '../../guards/index.js';
import { type Decision } from '../../limiter/decision.js';
import { type Acquire, type RateLimiter } from '../../limiter/rate-limiter.js';
import { GrpcOptions } from './grpc-options.js';
import { rejectionStatus } from './grpc-status.js';

/** What a message takes; undefined if it is free. */
export type MessageQuestion<T> = (message: T) => Acquire | undefined;

/** What happens to messages that are too many. The initial values are the defaults. */
export class LimitStreamOptions<T = unknown> {
  /** `'end'`: the stream ends with status 8, or 14; `'drop'`: the message is left out. */
  onLimit: 'end' | 'drop' = 'end';
  /** Told of each message that was left out. */
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

/**
 * Limits a stream message by message; `@RateLimit` on the handler asks once, when it begins.
 * Messages keep their order, also where the limiter has to ask its store.
 */
export function limitStream<T>(
  limiter: Pick<RateLimiter, 'tryAcquire'>,
  what: Acquire | MessageQuestion<T>,
  options: Partial<LimitStreamOptions<T>> = {},
): MonoTypeOperatorFunction<T> {
  rejectUnknown('limitStream', options, ['onLimit', 'onDrop']);
  const { onLimit, onDrop } = Object.assign(new LimitStreamOptions<T>(), options);
  oneOf('limitStream.onLimit', onLimit, ['end', 'drop']);
  const judge = (message: T, decision: Decision): Observable<T> => {
    const { allowed, delayMs } = decision;
    if (allowed) return delayMs === 0 ? of(message) : of(message).pipe(delay(delayMs));
    if (onLimit === 'end') return throwError(() => new LimitedStreamException(decision));
    onDrop?.(message, decision);
    return EMPTY;
  };
  return concatMap((message: T) => {
    const request = typeof what === 'function' ? what(message) : what;
    if (request === undefined) return of(message);
    const answer = limiter.tryAcquire(request);
    return answer instanceof Promise
      ? from(answer).pipe(mergeMap((decision) => judge(message, decision)))
      : judge(message, answer);
  });
}
