import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { APP, weirQuota } from '../weir-quota.js';

type Answer = Decision | Promise<Decision>;

/** A quota is kept by app, not by key; so all keys are one here. */
class WeirQuota implements Contender<Answer> {
  readonly answers = 'at once';

  constructor(private readonly limiter: RateLimiter) {}

  decide(): Answer {
    return this.limiter.tryAcquire({ app: APP, cost: 1 });
  }

  allowed(answer: Answer): boolean {
    if (answer instanceof Promise) throw new Error('the memory store answered with a promise');
    if (answer.tier !== 'local') throw new Error(`decided by the ${answer.tier}, not by a lease`);
    return answer.allowed;
  }

  close(): Promise<void> {
    return this.limiter.close();
  }
}

export function createWeirQuota(options: ContenderOptions): Contender {
  return new WeirQuota(createRateLimiter({ store: 'memory', quota: weirQuota(options) }));
}
