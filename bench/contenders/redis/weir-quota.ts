import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { APP, weirQuota } from '../weir-quota.js';

/** The part of decisions that may be denials, or made without the store: a few can follow a stall. */
const MOST_WRONG = 0.01;

class WeirQuota implements Contender<Decision> {
  readonly answers = 'at once or later';
  private decisions = 0;
  private wrong = 0;

  constructor(private readonly limiter: RateLimiter) {}

  decide(): Decision | Promise<Decision> {
    const answer = this.limiter.tryAcquire({ app: APP, cost: 1 });
    return answer instanceof Promise ? answer.then(this.counted) : this.counted(answer);
  }

  allowed(decision: Decision): boolean {
    if (this.wrong > MOST_WRONG * this.decisions) {
      throw new Error(`weir denied ${this.wrong} requests, or decided them without Redis`);
    }
    return decision.allowed;
  }

  close(): Promise<void> {
    return this.limiter.close();
  }

  /** Denials, and answers without the store, are fast for the wrong reason. */
  private readonly counted = (decision: Decision): Decision => {
    this.decisions++;
    if (!decision.allowed || decision.source === 'fallback') this.wrong++;
    return decision;
  };
}

export async function createWeirQuota(options: ContenderOptions): Promise<Contender> {
  const limiter = createRateLimiter({
    store: { type: 'redis', url: options.redisUrl ?? '', prefix: options.prefix },
    quota: weirQuota(options),
  });
  await limiter.ready();
  return new WeirQuota(limiter);
}
