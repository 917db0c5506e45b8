import { type LimitsChange } from '../../../limiter/limits-change.js';
import { policiesOf, quotaOf, scaled, type HistoryPlan } from './plan.js';
import { type PolicyBounds } from './policy-bounds.js';
import { type QuotaBounds } from './quota-bounds.js';

/** The limits of a plan as they are now: each of them may have been changed by a factor. */
export class LimitsInForce {
  revision = 0;
  private readonly factors: number[] = [];

  constructor(private readonly plan: HistoryPlan) {}

  /** The limits that a process is configured with. */
  get change(): LimitsChange {
    const { plan, factors } = this;
    const quota = quotaOf(plan, this.factorOf(plan.policies.length));
    return {
      revision: this.revision,
      policies: policiesOf(plan, factors),
      ...(quota && { quota }),
    };
  }

  /** The quota is the limit after the policies. */
  set(limit: number, factor: number): void {
    this.revision++;
    this.factors[limit] = factor;
  }

  factorOf(limit: number): number {
    return this.factors[limit] ?? 1;
  }

  /** Tokens per second: of an app those that it is sure of. */
  rateOf(limit: number, app: string | undefined): number {
    const { plan } = this;
    const policy = plan.policies[limit];
    const factor = this.factorOf(Math.min(limit, plan.policies.length));
    if (policy !== undefined) return (scaled(policy, factor).rate * 1000) / policy.periodMs;
    return quotaOf(plan, factor)!.apps[app!]!.guaranteed;
  }

  /** Lets the bounds of a limit follow a factor. */
  bind(
    limit: number,
    factor: number,
    policies: readonly PolicyBounds[],
    quota: QuotaBounds | undefined,
    second: number,
  ): void {
    const { plan } = this;
    const policy = plan.policies[limit];
    if (policy === undefined) return quota?.change(quotaOf(plan, factor)!, second);
    const { rate, burst } = scaled(policy, factor);
    const perSecond = (rate * 1000) / policy.periodMs;
    policies[limit]!.change(perSecond, policy.kind === 'window' ? rate : burst, second);
  }
}
