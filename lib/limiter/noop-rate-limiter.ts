import { SystemClock, type Clock } from '../common/clock.js';
import { type HotValue } from '../local/hot-values.js';
import { type Decision } from './decision.js';
import { type RateLimiterEvents } from './events.js';
import { type LimitInput } from './given-limits.js';
import { type LimitsChange } from './limits-change.js';
import { type RateLimiterOptions } from './options.js';
import { type PolicyInput } from './policy-options.js';
import {
  isList,
  RateLimiter,
  type Acquire,
  type AcquireRequest,
  type ClusterQuota,
  type PolicyInfo,
  type RateLimiterStats,
  type RateQuery,
} from './rate-limiter.js';
import { WeirRateLimiter } from './weir-rate-limiter.js';

/**
 * Lets every request pass and takes nothing. Policies are checked as ever, so that mistakes in them show;
 * a store is never opened.
 */
export class NoopRateLimiter extends RateLimiter {
  /** @internal */
  readonly redis = undefined;
  private readonly known: WeirRateLimiter;
  private readonly clock: Clock;

  constructor(options: Omit<RateLimiterOptions, 'store'> = {}) {
    super();
    this.known = new WeirRateLimiter({ ...options, store: 'memory' });
    this.clock = options.clock ?? new SystemClock();
  }

  tryAcquire(request: Acquire): Decision {
    if (!isList(request)) return this.decide(request);
    const decisions = request.map((one) => this.decide(one));
    return { ...decisions[0]!, decisions };
  }

  allow(): boolean {
    return true;
  }

  allowN(): boolean {
    return true;
  }

  acquire(request: Acquire): Promise<Decision> {
    return Promise.resolve(this.tryAcquire(request));
  }

  refund(): void {}

  peek(request: Acquire): Decision {
    return this.tryAcquire(request);
  }

  reset(): void {}

  define(policies: Readonly<Record<string, PolicyInput>>): void {
    this.known.define(policies);
  }

  prepare(change: LimitsChange): () => void {
    return this.known.prepare(change);
  }

  get revision(): number {
    return this.known.revision;
  }

  policy(name: string): PolicyInfo | undefined {
    return this.known.policy(name);
  }

  checkLimit(policy: string, limit: LimitInput, cost?: number): void {
    this.known.checkLimit(policy, limit, cost);
  }

  policyNames(): string[] {
    return this.known.policyNames();
  }

  hotValues(policy: string, count?: number): HotValue[] {
    return this.known.hotValues(policy, count);
  }

  override currentRate(query: RateQuery): number | undefined {
    return this.known.currentRate(query);
  }

  on<N extends keyof RateLimiterEvents>(
    name: N,
    listener: (event: RateLimiterEvents[N]) => void,
  ): () => void {
    return this.known.on(name, listener);
  }

  /** An application with a quota asks for it when it starts, also one that has been given a limiter without. */
  get quota(): ClusterQuota {
    return { status: async () => this.known.quota.status() };
  }

  stats(): RateLimiterStats {
    return this.known.stats();
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.known.close();
  }

  private decide({ policy, app }: AcquireRequest): Decision {
    const name = policy ?? app ?? '';
    const limit = this.known.policy(name)?.base.capacity ?? Number.MAX_SAFE_INTEGER;
    return {
      ...{ allowed: true, remaining: limit, limit, delayMs: 0, retryAfterMs: 0, resetMs: 0 },
      timestampMs: this.clock.epochMs(this.clock.now()),
      policy: name,
      tier: app === undefined ? 'policy' : 'app',
      source: 'local',
    };
  }
}
