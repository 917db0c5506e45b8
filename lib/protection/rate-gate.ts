import { type Clock } from '../common/clock.js';
import { type Decision } from '../limiter/decision.js';
import { type PolicyRequest, type RateLimiter } from '../limiter/rate-limiter.js';
import { ProtectionRejectedError } from './errors.js';
import { type Run, type TokenSource } from './run.js';

/** The policy that a resource's calls are charged to. */
export class RateGate implements TokenSource {
  private readonly request: PolicyRequest;

  constructor(
    private readonly resource: string,
    policy: string,
    private readonly limiter: RateLimiter,
    private readonly clock: Clock,
  ) {
    this.request = { policy, key: resource };
  }

  /** Undefined if the run may go on at once; else it may when that resolves. */
  ask(run: Run): Promise<void> | undefined {
    const decision = this.limiter.tryAcquire(this.request);
    if (decision instanceof Promise) return decision.then((late) => this.heed(run, late));
    return this.heed(run, decision);
  }

  /** For a run that has tokens and will not begin. */
  refund(): void {
    const done = this.limiter.refund(this.request);
    // Tokens that cannot be given back come back with time.
    if (done instanceof Promise) done.catch(() => undefined);
  }

  private heed(run: Run, { allowed, retryAfterMs, delayMs }: Decision): Promise<void> | undefined {
    if (!allowed) throw new ProtectionRejectedError(this.resource, 'limited', retryAfterMs);
    if (run.isOver) {
      this.refund();
      return undefined;
    }
    run.tokensOf = this;
    if (delayMs === 0) return undefined;
    if (this.clock.now() + delayMs * 1000 >= run.beginBy) {
      throw new ProtectionRejectedError(this.resource, 'limited', Math.ceil(delayMs));
    }
    return new Promise((resolve) => this.clock.after(delayMs, resolve));
  }
}
