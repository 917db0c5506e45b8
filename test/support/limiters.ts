import {
  createRateLimiter,
  type PolicyRequest,
  type Decision,
  type PolicyFields,
  type PolicyInput,
  type RateLimiter,
  type StoreInput,
} from 'nestjs-weir';
import { ManualClock } from './manual-clock.js';

/** A limiter of one policy `p` on a clock of our own. */
export class Bench {
  readonly clock: ManualClock;
  readonly limiter: RateLimiter;

  constructor(policy: PolicyFields, store: StoreInput = 'memory', clock = new ManualClock()) {
    this.clock = clock;
    this.limiter = createRateLimiter({ policies: { p: policy as PolicyInput }, store, clock });
  }

  /** One request for the key `k`. The memory store answers at once. */
  take(cost = 1, request: Partial<PolicyRequest> = {}): Decision {
    return now(this.limiter.tryAcquire({ policy: 'p', key: 'k', cost, ...request }));
  }

  /** Makes as many requests of cost 1 at this instant; returns the number allowed. */
  takeMany(count: number): number {
    let allowed = 0;
    for (let i = 0; i < count; i++) if (this.take().allowed) allowed++;
    return allowed;
  }

  peek(cost = 1): Decision {
    return now(this.limiter.peek({ policy: 'p', key: 'k', cost }));
  }
}

/** The answers to calls that were all made before the first was waited for. */
export function together<T>(answers: readonly (T | Promise<T>)[]): Promise<T[]> {
  return Promise.all(answers.map((answer) => Promise.resolve(answer)));
}

/** Says that an answer had to come at once, and fails if it did not. */
export function now<T>(answer: T | Promise<T>): T {
  if (answer instanceof Promise) throw new Error('expected an answer at once, got a promise');
  return answer;
}
