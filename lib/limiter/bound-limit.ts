import {
  AlgorithmCode,
  algorithmOf,
  shareOf,
  type Algorithm,
  type Limit,
  type Outcome,
} from '../algorithms/index.js';
import { type Clock } from '../common/clock.js';
import { CostExceedsLimitError, InvalidArgumentError } from '../common/errors.js';
import { DenyCache, type Denial } from '../local/deny-cache.js';
import { type LeaseDesk } from '../local/lease-desk.js';
import { type LeasedKeys } from '../local/leased-keys.js';
import { type BucketTable, type MemoryStore, type SharedLimit } from '../stores/index.js';
import { type Decision, type DecisionSource } from './decision.js';
import { type CheckedPolicy, type FailureMode, type SyncMode } from './policy-options.js';

/** What has been decided so far. */
export interface LimitCounters {
  allowed: number;
  denied: number;
  /** Would have been denied, but the policy only watches. */
  shadowDenied: number;
  /** Decided without the store because it could not answer. */
  fallback: number;
}

/**
 * The limit of one tier of a policy, tied to where its buckets live: in a table of this process
 * (`table` is set), or in the shared store, with what is kept here beside it.
 */
export class BoundLimit implements SharedLimit {
  readonly id: string;
  readonly policy: string;
  readonly failureMode: FailureMode;
  readonly shadow: boolean;
  readonly maxWaiters: number;
  readonly denials: DenyCache;
  readonly counters: LimitCounters = { allowed: 0, denied: 0, shadowDenied: 0, fallback: 0 };
  /** Keys of which this process holds tokens; only where the store is shared. */
  leases: LeasedKeys | undefined = undefined;
  private readonly sync: SyncMode;
  private readonly algorithm: Algorithm;
  private readonly defaultCost: number;
  private largestCost: number;
  private fallback: BucketTable | undefined;
  private fallbackNodes = 0;

  constructor(
    policy: CheckedPolicy,
    tier: string,
    readonly limit: Limit,
    readonly table: BucketTable | undefined,
    private readonly memory: MemoryStore,
    maxKeys: number,
  ) {
    const { options } = policy;
    this.policy = policy.name;
    // The algorithm is part of the name: its state means nothing to another one.
    this.id = `${policy.name}:${tier}:${limit.algorithm}`;
    this.algorithm = algorithmOf(limit.algorithm);
    this.failureMode = options.failureMode;
    this.shadow = options.shadow;
    this.sync = options.sync;
    this.maxWaiters = options.maxWaiters;
    this.defaultCost = options.cost;
    this.largestCost = options.cost;
    this.denials = new DenyCache(maxKeys);
  }

  /** From now on keys in demand may be leased, if the policy and its algorithm have it so. */
  leaseFrom(desk: LeaseDesk): void {
    if (this.table !== undefined || this.sync === 'exact') return;
    if (this.limit.algorithm !== AlgorithmCode.TokenBucket) return;
    this.leases = desk.open(this, this.sync);
  }

  /** The cost of a request, which must be one that can ever be paid. */
  costOf(cost: number | undefined): number {
    return cost === undefined || cost === this.defaultCost
      ? this.defaultCost
      : this.checkedCost(cost);
  }

  private checkedCost(cost: number): number {
    if (cost > this.limit.capacity) {
      throw new CostExceedsLimitError(this.policy, cost, this.limit.capacity);
    }
    if (!Number.isInteger(cost) || cost < 1) {
      throw new InvalidArgumentError('cost', cost, 'a whole number above 0');
    }
    if (cost > this.largestCost) this.largestCost = cost;
    return cost;
  }

  /** How long a remembered denial makes `cost` wait; undefined if only the store can tell. */
  waitAfter(denial: Denial, cost: number, now: number): number | undefined {
    const more = cost - denial.cost;
    const { perMicro, perToken } = this.limit;
    if (more > 0 && perMicro === 0) return undefined;
    return denial.untilMicros - now + (more > 0 ? Math.ceil((more * perToken) / perMicro) : 0);
  }

  /** This node's share of the limit, for while the store is away. */
  fallbackTable(nodes: number): BucketTable {
    const { fallback } = this;
    const fits = fallback !== undefined && fallback.limit.capacity >= this.largestCost;
    if (fits && this.fallbackNodes === nodes) return fallback;
    const share = shareOf(this.limit, nodes, this.largestCost);
    this.fallbackNodes = nodes;
    // Another share, but the same buckets: what was used stays used.
    if (fallback !== undefined) fallback.changeLimit(share);
    else this.fallback = this.memory.open(share);
    return this.fallback!;
  }

  /** How often a key had to share a bucket of this process. */
  get overflowed(): number {
    return (this.table?.overflowed ?? 0) + (this.fallback?.overflowed ?? 0);
  }

  /** Counts an outcome and puts it into words; `limit` may be a share of the own one. */
  decide(
    limit: Limit,
    outcome: Readonly<Outcome>,
    clock: Pick<Clock, 'epochMs'>,
    source: DecisionSource,
  ): Decision {
    this.count(outcome.allowed, source);
    return this.describe(limit, outcome, clock, source);
  }

  count(passed: boolean, source: DecisionSource): void {
    const { counters } = this;
    if (passed) counters.allowed++;
    else if (this.shadow) counters.shadowDenied++;
    else counters.denied++;
    if (source === 'fallback') counters.fallback++;
  }

  /** `clock` is the one that the instant of the outcome was read from. */
  describe(
    limit: Limit,
    outcome: Readonly<Outcome>,
    clock: Pick<Clock, 'epochMs'>,
    source: DecisionSource,
  ): Decision {
    const { allowed, level, waitMicros, nowMicros } = outcome;
    const waitMs = waitMicros === 0 ? 0 : Math.ceil(waitMicros / 1000);
    const passes = allowed || this.shadow;
    return {
      allowed: passes,
      remaining: level < limit.perToken ? 0 : Math.floor(level / limit.perToken),
      limit: limit.capacity,
      delayMs: allowed && !this.shadow ? waitMs : 0,
      retryAfterMs: passes ? 0 : waitMs,
      resetMs: this.algorithm.resetMs(limit, outcome),
      timestampMs: clock.epochMs(nowMicros),
      policy: this.policy,
      tier: 'policy',
      source,
    };
  }
}
