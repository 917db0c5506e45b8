import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { weirPolicy } from '../weir-policy.js';

type Answer = Decision | Promise<Decision>;

/** The public call, with a request of its own each time: what an application writes. */
class Weir implements Contender<Answer> {
  readonly answers = 'at once';

  constructor(private readonly limiter: RateLimiter) {}

  decide(key: string): Answer {
    return this.limiter.tryAcquire({ policy: 'api', key, cost: 1 });
  }

  allowed(answer: Answer): boolean {
    if (answer instanceof Promise) throw new Error('the memory store answered with a promise');
    return answer.allowed;
  }

  close(): Promise<void> {
    return this.limiter.close();
  }
}

export function createWeir(options: ContenderOptions): Contender {
  const limiter = createRateLimiter({
    store: { type: 'memory', maxKeys: 2_000_000 },
    policies: { api: weirPolicy(options) },
  });
  return new Weir(limiter);
}
