import { type Clock } from '../common/clock.js';
import { type RemoteStore } from '../stores/remote-store.js';
import { type SplitRequest } from './asked.js';
import { MultiTake } from './take-all.js';
import { decisive, type Decision } from './decision.js';
import { takeLeased } from './leased-take.js';
import { type QuotaRegistry } from './quota-registry.js';
import { type Refunds } from './peek-refund.js';
import { type BoundCheck } from './remembered-denial.js';
import { SingleTake } from './take.js';

/** Takes for lists of requests, in any mixture of policies and quotas: all or none of them. */
export class ListTaker {
  constructor(
    /** Looked up each time: it throws where there is none, or none any more. */
    private readonly quotaBook: () => QuotaRegistry,
    private readonly remote: RemoteStore | undefined,
    private readonly refunds: Refunds,
    private readonly clock: Clock,
  ) {}

  /** Quotas first: they are nearly always decided here, and what was taken can be put back. */
  take(asked: SplitRequest): Decision | Promise<Decision> {
    const { checks, quotas } = asked;
    if (quotas.length === 0) return this.takeAll(checks);
    const made: Decision[] = [];
    const next = (): Decision | Promise<Decision> => {
      const quota = quotas[made.length];
      if (quota === undefined) return this.afterQuotas(asked, made);
      const decision = this.quotaBook().decide(quota);
      const go = (one: Decision): Decision | Promise<Decision> => {
        if (!one.allowed) {
          this.refunds.refundQuotas(quotas.slice(0, made.length), made);
          return decisive([one]);
        }
        made.push(one);
        return next();
      };
      return decision instanceof Promise ? decision.then(go) : go(decision);
    };
    return next();
  }

  private afterQuotas(
    { checks, quotas }: SplitRequest,
    made: readonly Decision[],
  ): Decision | Promise<Decision> {
    if (checks.length === 0) return decisive(made);
    const join = (decision: Decision): Decision => {
      if (!decision.allowed) this.refunds.refundQuotas(quotas, made);
      const parts = decision.decisions ?? [decision];
      return decisive(decision.allowed ? [...made, ...parts] : parts);
    };
    const decision = this.takeAll(checks);
    return decision instanceof Promise ? decision.then(join) : join(decision);
  }

  /** A policy that only watches has no part in whether the others are taken. */
  private takeAll(checks: readonly BoundCheck[]): Decision | Promise<Decision> {
    const isList = checks.length > 1;
    const enforced = checks.filter((check) => !check.limit.shadow);
    if (enforced.length === checks.length || !isList) return this.attempt(checks, isList);
    if (enforced.length === 0) return this.watch(checks);
    const decision = this.attempt(enforced, isList);
    const watched = checks.filter((check) => check.limit.shadow);
    if (decision instanceof Promise) {
      return decision.then((made) => this.watchIfAllowed(made, watched));
    }
    return this.watchIfAllowed(decision, watched);
  }

  private watchIfAllowed(decision: Decision, watched: readonly BoundCheck[]): Decision {
    if (decision.allowed) void this.watch(watched);
    return decision;
  }

  private watch(checks: readonly BoundCheck[]): Decision | Promise<Decision> {
    const decisions = checks.map((check) => this.attempt([check], false));
    return decisions.some((decision) => decision instanceof Promise)
      ? Promise.all(decisions.map((one) => Promise.resolve(one))).then(decisive)
      : decisive(decisions as Decision[]);
  }

  private attempt(checks: readonly BoundCheck[], isList: boolean): Decision | Promise<Decision> {
    const [first] = checks;
    const { remote, clock } = this;
    if (!isList && remote !== undefined && first?.limit.table === undefined) {
      const { limit, key, cost } = first!;
      return takeLeased(limit, key, cost, clock) ?? new SingleTake(first!, remote, clock).begin();
    }
    return new MultiTake(checks, isList, remote, clock).begin();
  }
}
