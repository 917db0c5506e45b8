import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { type Contender, type ContenderOptions } from '../contender.js';

/** As in its basic example; a denial is a rejection with the same result object. */
class RateLimiterFlexible implements Contender<RateLimiterRes> {
  readonly answers = 'later';

  constructor(private readonly limiter: RateLimiterMemory) {}

  decide(key: string): Promise<RateLimiterRes> {
    return this.limiter.consume(key, 1);
  }

  allowed(result: RateLimiterRes): boolean {
    return result.consumedPoints <= this.limiter.points;
  }

  close(): void {}
}

export function createRateLimiterFlexible(options: ContenderOptions): Contender {
  return new RateLimiterFlexible(
    new RateLimiterMemory({ points: options.limit, duration: options.periodMs / 1000 }),
  );
}
