import { RateLimiter } from 'limiter';
import { type Contender, type ContenderOptions } from '../contender.js';

/** Milliseconds to wait, or 0 if the request may pass. */
type WaitMs = number;

/**
 * One limiter per key in a Map, used as under "Reject instead of waiting" in its README: try, and
 * ask for the wait only when it said no. It tells neither what remains nor when all is back, so it
 * does less than the floor on allowed traffic.
 */
class Limiter implements Contender<WaitMs> {
  readonly answers = 'at once';
  private readonly limiters = new Map<string, RateLimiter>();

  constructor(private readonly options: ContenderOptions) {}

  decide(key: string): WaitMs {
    let limiter = this.limiters.get(key);
    if (limiter === undefined) {
      limiter = new RateLimiter({
        tokensPerInterval: this.options.limit,
        interval: this.options.periodMs,
      });
      this.limiters.set(key, limiter);
    }
    return limiter.tryRemoveTokens(1) ? 0 : limiter.getWaitTime(1);
  }

  allowed(waitMs: WaitMs): boolean {
    return waitMs === 0;
  }

  close(): void {
    this.limiters.clear();
  }
}

export function createLimiter(options: ContenderOptions): Contender {
  return new Limiter(options);
}
