import { type AcquireOptions, type PolicyRequest, type Decision } from 'nestjs-weir';
import { type Bench } from './limiters.js';
import { settle } from './manual-clock.js';

/** One `acquire` call, and what has become of it. */
export class Waiter {
  decision: Decision | undefined;
  error: unknown;
  private readonly controller = new AbortController();

  constructor(
    bench: Bench,
    request: Partial<PolicyRequest> = {},
    options: AcquireOptions = {},
    onEnd: (waiter: Waiter) => void = () => {},
  ) {
    const { signal } = this.controller;
    bench.limiter
      .acquire({ policy: 'p', key: 'k', ...request }, { signal, ...options })
      .then(
        (decision) => (this.decision = decision),
        (error: unknown) => (this.error = error),
      )
      .finally(() => onEnd(this));
  }

  get state(): 'waiting' | 'granted' | 'rejected' {
    if (this.decision !== undefined) return 'granted';
    return this.error === undefined ? 'waiting' : 'rejected';
  }

  abort(reason: unknown = new Error('aborted by the test')): void {
    this.controller.abort(reason);
  }
}

/** The state of each, once every promise that can settle has. */
export async function statesOf(...waiters: Waiter[]): Promise<string[]> {
  await settle();
  return waiters.map((waiter) => waiter.state);
}
