import { createRateLimiter, type Decision, type PolicyInput, type RateLimiter } from 'nestjs-weir';
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
  return new Weir(limiterOf(weirPolicy(options)));
}

/** The same limit, but one that was put in place of another while the limiter was in use. */
export function createChangedWeir(options: ContenderOptions): Contender {
  const policy = weirPolicy(options);
  const limiter = limiterOf({ ...policy, rate: options.limit / 2 });
  limiter.prepare({ revision: 1, policies: { api: policy } })();
  return new Weir(limiter);
}

function limiterOf(policy: PolicyInput): RateLimiter {
  return createRateLimiter({
    store: { type: 'memory', maxKeys: 2_000_000 },
    policies: { api: policy },
  });
}
