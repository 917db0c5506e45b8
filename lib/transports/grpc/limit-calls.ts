import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { SystemClock, type Clock } from '../../common/clock.js';
import { durationMs, type Duration } from '../../common/duration.js';
import { rejectUnknown } from '../../common/validate.js';
import { type Acquire, type RateLimiter } from '../../limiter/rate-limiter.js';
import { CallGate, type LimitedCall } from './call-gate.js';
import { GatedCall } from './gated-call.js';
import { Pushbacks } from './pushbacks.js';

/** What a call takes; undefined if it is free. */
export type CallQuestion = (call: LimitedCall) => Acquire | undefined;

/** How outgoing calls are limited. The initial values are the defaults. */
export class LimitCallsOptions {
  /**
   * When a server answers 8 or 14 with `grpc-retry-pushback-ms` or `retry-after-ms`, calls of the
   * same method that take the same tokens fail here for that long.
   */
  pushback = true;
  /** The longest time that a server's pushback is honoured for. */
  longestPushback: Duration = '1m';
  /** The source of time; tests bring their own. */
  clock: Pick<Clock, 'now' | 'after'> = new SystemClock();
}

/**
 * An interceptor for clients of grpc-js: asks the limiter before each call, and fails with status 8
 * those that are too many, without a word to the server.
 */
export function limitCalls(
  limiter: Pick<RateLimiter, 'tryAcquire' | 'refund'>,
  what: Acquire | CallQuestion,
  options: Partial<LimitCallsOptions> = {},
): Interceptor {
  const defaults = new LimitCallsOptions();
  rejectUnknown('limitCalls', options, Object.keys(defaults));
  const { pushback, longestPushback, clock } = Object.assign(defaults, options);
  const longestMs = durationMs(longestPushback, 'limitCalls.longestPushback');
  const pushbacks = pushback ? new Pushbacks(clock, longestMs) : undefined;
  const question = typeof what === 'function' ? what : () => what;
  return (callOptions, nextCall) => {
    const { path } = callOptions.method_definition;
    const { deadline = Infinity } = callOptions;
    const gate = new CallGate(limiter, question, pushbacks, clock);
    const gated = new GatedCall(
      () => nextCall(callOptions),
      (metadata) => gate.ask({ path, metadata, deadline }),
      gate,
    );
    return new InterceptingCall(gated);
  };
}
