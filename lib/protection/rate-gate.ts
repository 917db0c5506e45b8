import { type Clock } from '../common/clock.js';
import { isStrayPromise } from '../common/promises.js';
import { type Decision } from '../limiter/decision.js';
import { type PolicyRequest, type RateLimiter } from '../limiter/rate-limiter.js';
import { NO_KEY, textOf } from '../limits/key-resolver.js';
import { ProtectionRejectedError } from './errors.js';
import { type RateKey, type RateSettings } from './resource-options.js';
import { type Run, type TokenSource } from './run.js';

/** The policy that a resource's calls are charged to. */
export class RateGate {
  private readonly shared: PolicyRequest;
  private readonly sharedTokens: CallTokens;
  private readonly keyOf: KeyOf | undefined;

  constructor(
    private readonly resource: string,
    { policy, key }: RateSettings,
    private readonly limiter: RateLimiter,
    private readonly clock: Clock,
  ) {
    this.shared = { policy, key: resource };
    this.sharedTokens = new CallTokens(limiter, this.shared);
    this.keyOf = key && keyReader(key);
  }

  /** Undefined if the run may go on at once; else it may when that resolves. */
  ask(run: Run, args: readonly unknown[]): Promise<void> | undefined {
    const { keyOf, shared } = this;
    const request = keyOf === undefined ? shared : { policy: shared.policy, key: keyOf(args) };
    const decision = this.limiter.tryAcquire(request);
    if (decision instanceof Promise) return decision.then((late) => this.heed(run, request, late));
    return this.heed(run, request, decision);
  }

  private heed(run: Run, request: PolicyRequest, decision: Decision): Promise<void> | undefined {
    const { allowed, retryAfterMs, delayMs } = decision;
    if (!allowed) throw new ProtectionRejectedError(this.resource, 'limited', retryAfterMs);
    const { shared, sharedTokens, limiter } = this;
    const tokens = request === shared ? sharedTokens : new CallTokens(limiter, request, decision);
    if (run.isOver) {
      tokens.refund();
      return undefined;
    }
    run.tokensOf = tokens;
    if (delayMs === 0) return undefined;
    if (this.clock.now() + delayMs * 1000 >= run.beginBy) {
      throw new ProtectionRejectedError(this.resource, 'limited', Math.ceil(delayMs));
    }
    return new Promise((resolve) => this.clock.after(delayMs, resolve));
  }
}

/** Of a call that has its tokens and may still not begin. */
class CallTokens implements TokenSource {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly request: PolicyRequest,
    /** Of one call. Not of the bucket that all calls share: no object is made for each of them. */
    private readonly decision?: Decision,
  ) {}

  refund(): void {
    const done = this.limiter.refund(this.request, this.decision);
    // Tokens that cannot be given back come back with time.
    if (done instanceof Promise) done.catch(() => undefined);
  }
}

type KeyOf = (args: readonly unknown[]) => string;

/** An argument that is missing or odd has the key that such requests have everywhere. */
function keyReader(key: RateKey): KeyOf {
  if (typeof key !== 'function') {
    const path = key.path?.split('.') ?? [];
    return (args) => textOf(valueIn(args[key.arg], path)) ?? NO_KEY;
  }
  return (args) => {
    try {
      const value: unknown = (key as (...all: readonly unknown[]) => unknown)(...args);
      return (isStrayPromise(value) ? undefined : textOf(value)) ?? NO_KEY;
    } catch {
      return NO_KEY;
    }
  };
}

/** Arguments may be objects with getters, of which one may throw. */
function valueIn(from: unknown, path: readonly string[]): unknown {
  let value = from;
  try {
    for (const name of path) {
      if (typeof value !== 'object' || value === null) return undefined;
      value = (value as Record<string, unknown>)[name];
    }
  } catch {
    return undefined;
  }
  return value;
}
