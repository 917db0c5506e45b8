import { isSameLimit, type Limit } from '../algorithms/index.js';
import { type LeaseDesk } from '../local/lease-desk.js';
import { type MemoryStore } from '../stores/index.js';
import { BoundLimit, limitId } from './bound-limit.js';
import { noCounts, type LimitCounters } from './limit-counters.js';
import { type CheckedPolicy } from './policy-options.js';

/** A policy that decides. */
export interface BoundPolicy {
  readonly name: string;
  /** What it was made of. */
  readonly checked: CheckedPolicy;
  readonly tiers: ReadonlyMap<string, BoundLimit>;
  readonly base: BoundLimit;
  readonly counters: LimitCounters;
}

/** Ties policies to where their buckets live, and hands buckets over when a policy changes. */
export class PolicyBinder {
  /** From when it is set on, hot keys may be leased. */
  desk: LeaseDesk | undefined = undefined;

  constructor(
    private readonly memory: MemoryStore,
    private readonly hasRemote: boolean,
    private readonly maxKeys: number,
  ) {}

  /** In the place of the policy that was there `before`, if there was one. */
  bind(policy: CheckedPolicy, before: BoundPolicy | undefined, now: number): BoundPolicy {
    if (before?.checked === policy) return before;
    const counters = before?.counters ?? noCounts();
    const tiers = new Map<string, BoundLimit>();
    for (const [tier, limit] of policy.limits) {
      const old = before?.tiers.get(tier);
      tiers.set(tier, this.bindTier(policy, tier, limit, counters, old, now));
    }
    if (before !== undefined) this.release(before, tiers);
    return {
      name: policy.name,
      checked: policy,
      tiers,
      base: tiers.get(policy.defaultTier)!,
      counters,
    };
  }

  /** Ends the limits of a policy that no tier of `kept` has taken over. */
  release(policy: BoundPolicy, kept?: ReadonlyMap<string, BoundLimit>): void {
    for (const [tier, limit] of policy.tiers) {
      if (limit.latest() !== kept?.get(tier)) limit.retire(this.desk);
    }
  }

  private bindTier(
    policy: CheckedPolicy,
    tier: string,
    limit: Limit,
    counters: LimitCounters,
    old: BoundLimit | undefined,
    now: number,
  ): BoundLimit {
    if (old?.isAs(policy, limit) === true) return old;
    const { memory, maxKeys } = this;
    const isHere = !this.hasRemote || policy.options.scope === 'node';
    const goesOn = old?.id === limitId(policy, tier, limit) && (old.table !== undefined) === isHere;
    const figures = goesOn && isSameLimit(old.limit, limit) ? old.limit : limit;
    const table = isHere ? (goesOn ? old.table : memory.open(limit)) : undefined;
    const bound = new BoundLimit(policy, tier, figures, table, { memory, maxKeys, counters });
    if (goesOn) bound.succeed(old, this.desk, now);
    if (this.desk !== undefined) bound.leaseFrom(this.desk);
    return bound;
  }
}
