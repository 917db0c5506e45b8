import {
  InterceptingCall,
  Metadata,
  type InterceptingListener,
  type Interceptor,
  type NextCall,
  type status,
} from '@grpc/grpc-js';
import { SystemClock, type Clock } from '../../common/clock.js';
import { durationMs, type Duration } from '../../common/duration.js';
import { rejectUnknown } from '../../common/validate.js';
import { type Acquire, type RateLimiter } from '../../limiter/rate-limiter.js';
import { CallGate, failed, Pushbacks, type LimitedCall, type CallDenial } from './call-gate.js';

/** The charge of a call; undefined if it is free. */
export type CallCharge = (call: LimitedCall) => Acquire | undefined;

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
 * An interceptor for clients of grpc-js: charges each call before it is made, and fails with status 8
 * those that are too many, without sending them.
 */
export function limitCalls(
  limiter: Pick<RateLimiter, 'tryAcquire' | 'refund'>,
  what: Acquire | CallCharge,
  options: Partial<LimitCallsOptions> = {},
): Interceptor {
  const defaults = new LimitCallsOptions();
  rejectUnknown('limitCalls', options, Object.keys(defaults));
  const { pushback, longestPushback, clock } = Object.assign(defaults, options);
  const longestMs = durationMs(longestPushback, 'limitCalls.longestPushback');
  const pushbacks = pushback ? new Pushbacks(clock, longestMs) : undefined;
  const charge = typeof what === 'function' ? what : () => what;
  return (callOptions, nextCall) => {
    const { path } = callOptions.method_definition;
    const { deadline = Infinity } = callOptions;
    const gate = new CallGate(limiter, charge, pushbacks, clock);
    const gated = new GatedCall(
      () => nextCall(callOptions),
      (metadata) => gate.ask({ path, metadata, deadline }),
      gate,
    );
    return new InterceptingCall(gated);
  };
}

/** A call as grpc-js hands it from one interceptor to the next. */
type Call = ReturnType<NextCall>;
type Context = Parameters<Call['sendMessageWithContext']>[0];

/**
 * A call that begins when its gate lets it. Until then all its operations are kept: a call that
 * exists runs against its deadline, and one that is never started would not say so.
 */
export class GatedCall implements Call {
  private inner: Call | undefined;
  private listener: Partial<InterceptingListener> | undefined;
  private readonly waiting: ((call: Call) => void)[] = [];
  private readonly unsent: Context[] = [];
  private isOver = false;

  constructor(
    private readonly makeCall: () => Call,
    private readonly ask: (metadata: Metadata) => CallDenial | Promise<CallDenial>,
    private readonly gate: CallGate,
  ) {}

  start(metadata: Metadata, listener?: Partial<InterceptingListener>): void {
    this.listener = listener;
    const denial = this.ask(metadata);
    if (denial instanceof Promise) void denial.then((said) => this.follow(said, metadata));
    else this.follow(denial, metadata);
  }

  sendMessageWithContext(context: Context, message: unknown): void {
    if (this.inner === undefined) this.unsent.push(context);
    this.whenMade((call) => call.sendMessageWithContext(context, message));
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  startRead(): void {
    this.whenMade((call) => call.startRead());
  }

  halfClose(): void {
    this.whenMade((call) => call.halfClose());
  }

  cancelWithStatus(code: status, details: string): void {
    if (this.inner !== undefined) this.inner.cancelWithStatus(code, details);
    else this.end({ code, details, metadata: new Metadata() });
  }

  getPeer(): string {
    return this.inner?.getPeer() ?? 'unknown';
  }

  getAuthContext(): ReturnType<Call['getAuthContext']> {
    return this.inner?.getAuthContext() ?? null;
  }

  private whenMade(what: (call: Call) => void): void {
    if (this.inner !== undefined) what(this.inner);
    else this.waiting.push(what);
  }

  private follow(denial: CallDenial, metadata: Metadata): void {
    if (this.isOver) {
      if (denial === undefined) this.gate.giveBack();
    } else if (denial === undefined) {
      this.go(metadata);
    } else {
      this.end(denial);
    }
  }

  private go(metadata: Metadata): void {
    const { listener } = this;
    let inner: Call;
    try {
      inner = this.inner = this.makeCall();
    } catch (error) {
      // A client that was closed meanwhile; only the listener can learn of it.
      return this.end(failed(error));
    }
    inner.start(metadata, {
      onReceiveMetadata: (received) => listener?.onReceiveMetadata?.(received),
      onReceiveMessage: (message: unknown) => listener?.onReceiveMessage?.(message),
      onReceiveStatus: (status) => {
        this.gate.ended(status);
        listener?.onReceiveStatus?.(status);
      },
    });
    for (const what of this.waiting.splice(0)) what(inner);
  }

  /** Later, as a real answer would be: there is no listener yet while a call is being started. */
  private end(status: NonNullable<CallDenial>): void {
    if (this.isOver) return;
    this.isOver = true;
    this.waiting.length = 0;
    process.nextTick(() => {
      for (const { callback } of this.unsent.splice(0)) callback?.();
      this.listener?.onReceiveStatus?.(status);
    });
  }
}
