import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { weirPolicy } from '../weir-policy.js';

type Answer = Decision | Promise<Decision>;

/** Two policies on one request, all or nothing. */
class WeirList implements Contender<Answer> {
  readonly answers = 'at once';

  constructor(private readonly limiter: RateLimiter) {}

  decide(key: string): Answer {
    return this.limiter.tryAcquire([
      { policy: 'api', key, cost: 1 },
      { policy: 'also', key, cost: 1 },
    ]);
  }

  allowed(answer: Answer): boolean {
    if (answer instanceof Promise) throw new Error('the memory store answered with a promise');
    return answer.allowed;
  }

  close(): Promise<void> {
    return this.limiter.close();
  }
}

export function createWeirList(options: ContenderOptions): Contender {
  const policies = { api: weirPolicy(options), also: weirPolicy(options) };
  return new WeirList(
    createRateLimiter({ store: { type: 'memory', maxKeys: 2_000_000 }, policies }),
  );
}
