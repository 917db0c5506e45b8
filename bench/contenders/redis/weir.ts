import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { weirPolicy } from '../weir-policy.js';

const MOST_FALLBACKS = 0.01;

class Weir implements Contender<Decision> {
  readonly answers = 'later';

  constructor(private readonly limiter: RateLimiter) {}

  decide(key: string): Decision | Promise<Decision> {
    return this.limiter.tryAcquire({ policy: 'api', key, cost: 1 });
  }

  allowed(decision: Decision): boolean {
    const { allowed, denied, fallback } = this.limiter.stats().policies.api!;
    // Answers without the store are fast for the wrong reason. A few can follow a stall.
    if (fallback > MOST_FALLBACKS * (allowed + denied)) {
      throw new Error(`weir decided ${fallback} requests without Redis`);
    }
    return decision.allowed;
  }

  close(): Promise<void> {
    return this.limiter.close();
  }
}

export async function createWeir(options: ContenderOptions): Promise<Contender> {
  const limiter = createRateLimiter({
    store: { type: 'redis', url: options.redisUrl ?? '', prefix: options.prefix },
    policies: { api: weirPolicy(options) },
  });
  await limiter.ready();
  return new Weir(limiter);
}
