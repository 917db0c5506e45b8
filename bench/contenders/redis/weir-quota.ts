import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { APP, weirQuota } from '../weir-quota.js';

class WeirQuota implements Contender<Decision> {
  readonly answers = 'later';
  private wasOffline = false;

  constructor(private readonly limiter: RateLimiter) {
    limiter.on('mode', ({ mode }) => (this.wasOffline ||= mode === 'offline'));
  }

  decide(): Decision | Promise<Decision> {
    return this.limiter.tryAcquire({ app: APP, cost: 1 });
  }

  allowed(decision: Decision): boolean {
    // Answers without the store are fast for the wrong reason.
    if (this.wasOffline) throw new Error('weir decided without Redis');
    return decision.allowed;
  }

  close(): Promise<void> {
    return this.limiter.close();
  }
}

export async function createWeirQuota(options: ContenderOptions): Promise<Contender> {
  const limiter = createRateLimiter({
    store: { type: 'redis', url: options.redisUrl ?? '', prefix: options.prefix },
    quota: weirQuota(options),
  });
  await limiter.ready();
  return new WeirQuota(limiter);
}
