import { algorithmOf } from '../algorithms/algorithm-of.js';
import { type Algorithm, type Outcome } from '../algorithms/algorithm.js';
import { AlgorithmCode, isSameLimit, type Limit, nodeShareOf } from '../algorithms/limit.js';
import { type Clock } from '../common/clock.js';
import { CostExceedsLimitError } from '../common/errors.js';
import { wholeCost } from '../common/validate.js';
import { DenyCache, type Denial } from '../local/deny-cache.js';
import { type LeaseRegistry } from '../local/lease-registry.js';
import { type LimitLeases } from '../local/limit-leases.js';
import { OwedTokens } from '../local/owed-tokens.js';
import { BucketTable } from '../stores/memory/bucket-table.js';
import { type MemoryStore } from '../stores/memory/memory-store.js';
import {
  Debt,
  type RemoteCall,
  type RemoteCheck,
  type SharedLimit,
} from '../stores/remote-store.js';
import { copyOf, type Decision, type DecisionCopy, type DecisionSource } from './decision.js';
import { type DeniedKeys } from './denied-keys.js';
import { type LimitCounters } from './limit-counters.js';
import { type HotGate } from './hot-gate.js';
import {
  type PolicySettings,
  type FailureMode,
  type PolicyOptions,
  type SyncMode,
} from './policy-options.js';

/**
 * One request, with its policy looked up and its arguments checked. The store takes it as it is: no other object is
 * made for a call.
 */
export interface BoundCheck extends RemoteCheck {
  readonly limit: BoundLimit;
}

interface DebtCheck extends BoundCheck {
  readonly usedAtMicros: number;
}

/** Tokens are scarce where less than this part of them is left. */
export const SCARCE = 0.2;

/** The state of a configuration that all of its limits are of. */
export interface Edition {
  readonly revision: number;
}

const NO_EDITION: Edition = { revision: 0 };

/** The part of a limit that the load of this process leaves, above 0 and at most 1. */
export interface LoadFactor {
  factor: number;
}

/** The dependencies that limits of one limiter, or of one policy, have in common. */
export interface LimitDeps {
  readonly memory: MemoryStore;
  readonly maxKeys: number;
  readonly counters: LimitCounters;
  readonly deniedKeys: DeniedKeys;
  /** Buckets for keys that find no room; undefined for as many as a policy has. */
  readonly overflowBuckets?: number;
  /** Decisions carry the time until all tokens are back: callers cannot know the figures. */
  readonly tellsWindow?: boolean;
  /** The load of this process, by which limits that are adaptive shrink. */
  readonly load?: LoadFactor;
  /** Only if values that are not in demand pass uncounted. */
  readonly hot?: HotGate | undefined;
}

/**
 * The limit of one tier of a policy, tied to where its buckets live: in a table of this process
 * (`table` is set), or in the shared store, with what is kept here beside it.
 *
 * Its figures never change. A change puts another one in its place, which takes over the buckets;
 * a request that is on its way goes by the one that it began with.
 */
export class BoundLimit implements SharedLimit {
  readonly id: string;
  readonly policy: string;
  readonly failureMode: FailureMode;
  readonly shadow: boolean;
  readonly maxWaiters: number;
  readonly counters: LimitCounters;
  readonly deniedKeys: DeniedKeys;
  /** Replaced when the limit is. */
  denials: DenyCache;
  /** Tokens not yet reported to the store; undefined while none has passed by share. */
  owed: OwedTokens | undefined = undefined;
  /** True if a request has more to look at than a bucket: values in demand, those with another tier, the load. */
  isSpecial: boolean;
  /** The table, if the limit is not special. */
  plainTable: BucketTable | undefined = undefined;
  /** The same if its buckets are those of tokens, and decisions say no more and nothing else than they. */
  tokenTable: BucketTable | undefined = undefined;
  readonly hot: HotGate | undefined;
  /** Only of an adaptive limit. */
  private readonly load: LoadFactor | undefined;
  /** Values of the key that have another limit, for requests that name no tier. */
  private exceptions: ReadonlyMap<string, BoundLimit> | undefined = undefined;
  /** Keys of which this process holds tokens; only where the store is shared. */
  leases: LimitLeases | undefined = undefined;
  private readonly scope: PolicyOptions['scope'];
  private readonly sync: SyncMode;
  private readonly algorithm: Algorithm;
  private readonly defaultCost: number;
  private readonly memory: MemoryStore;
  private readonly maxKeys: number;
  private readonly overflowBuckets: number | undefined;
  /** Only if decisions carry it. */
  private readonly windowMs: number | undefined;
  /** True if decisions say more than the bucket, or something else. */
  private readonly tells: boolean;
  private largestCost: number;
  private fallback: BucketTable | undefined = undefined;
  private fallbackNodes = 0;
  /** The latest limit on the same buckets, shared by all that preceded it. */
  private successor: { latest: BoundLimit } = { latest: this };
  private edition: Edition = NO_EDITION;
  private isRetired = false;

  constructor(
    policy: PolicySettings,
    readonly tier: string,
    readonly figures: Limit,
    readonly table: BucketTable | undefined,
    deps: LimitDeps,
  ) {
    const { memory, maxKeys, counters, deniedKeys, overflowBuckets, hot, load } = deps;
    const { tellsWindow = false } = deps;
    this.policy = policy.name;
    this.id = limitId(policy, tier, figures);
    this.algorithm = algorithmOf(figures.algorithm);
    this.failureMode = policy.failureMode;
    this.shadow = policy.shadow;
    this.scope = policy.scope;
    this.sync = policy.sync;
    this.maxWaiters = policy.maxWaiters;
    this.defaultCost = policy.cost;
    this.largestCost = policy.cost;
    this.denials = new DenyCache(maxKeys);
    this.memory = memory;
    this.maxKeys = maxKeys;
    this.overflowBuckets = overflowBuckets;
    this.windowMs = tellsWindow ? windowMsOf(figures) : undefined;
    this.counters = counters;
    this.deniedKeys = deniedKeys;
    this.hot = hot;
    this.load = policy.adaptive ? load : undefined;
    this.tells = tellsWindow || policy.adaptive;
    this.isSpecial = false;
    this.pickTables();
  }

  get isAdaptive(): boolean {
    return this.load !== undefined;
  }

  /** Revision of the configuration that has this limit; 0 if none does. It moves on while the limit stays. */
  get revision(): number {
    return this.edition.revision;
  }

  /** From now on the limit is one of a configuration, and moves on with it. */
  followRevision(edition: Edition): void {
    this.edition = edition;
  }

  /** From now on some values of the key have another limit. */
  setExceptions(exceptions: ReadonlyMap<string, BoundLimit> | undefined): void {
    this.exceptions = exceptions;
    this.pickTables();
  }

  /** Says which of the short ways of `take` the limit may go. */
  private pickTables(): void {
    const isPlain = this.hot === undefined && this.load === undefined;
    this.isSpecial = this.exceptions !== undefined || !isPlain;
    this.plainTable = this.isSpecial ? undefined : this.table;
    const isOfTokens = this.figures.algorithm === AlgorithmCode.TokenBucket;
    this.tokenTable = isOfTokens && !this.shadow && !this.tells ? this.plainTable : undefined;
  }

  /** The limit of a key, for a request that names no tier. */
  ofValue(key: string): BoundLimit {
    return this.exceptions?.get(key) ?? this;
  }

  /** Whether the policy has these figures and these options. */
  equals(policy: PolicySettings, limit: Limit): boolean {
    return (
      isSameLimit(limit, this.figures) &&
      policy.hotWidth === this.hot?.width &&
      policy.failureMode === this.failureMode &&
      policy.shadow === this.shadow &&
      policy.scope === this.scope &&
      policy.adaptive === this.isAdaptive &&
      policy.sync === this.sync &&
      policy.maxWaiters === this.maxWaiters &&
      policy.cost === this.defaultCost
    );
  }

  /**
   * Takes the place of another limit on the same buckets, which may be the same figures with other
   * options. Used and owed tokens stay so; denials and leases under other figures end.
   */
  takeOver(before: BoundLimit, leaseRegistry: LeaseRegistry | undefined, now: number): void {
    const { figures, table } = this;
    const isSame = figures === before.figures;
    this.successor = before.successor;
    this.successor.latest = this;
    before.freezeRevision();
    this.largestCost = Math.max(this.largestCost, Math.min(before.largestCost, figures.capacity));
    this.fallback = before.fallback;
    this.fallbackNodes = before.fallbackNodes;
    this.owed = before.owed;
    if (!isSame) {
      table?.replaceLimit(figures, now);
      this.fallback?.replaceLimit(this.share(this.fallbackNodes), now);
      this.owed?.rescale(figures.capacity / before.figures.capacity);
    } else {
      this.denials = before.denials;
    }
    if (isSame && this.sync === before.sync) {
      this.leases = before.leases;
      this.leases?.serve(this);
    } else {
      before.endLeases(leaseRegistry);
    }
  }

  /** The policy, the tier or its algorithm is gone, and with it the buckets of this process. */
  retire(leaseRegistry: LeaseRegistry | undefined): void {
    this.isRetired = true;
    this.freezeRevision();
    this.counters.overflowed += this.overflowed;
    this.endLeases(leaseRegistry);
    for (const table of [this.table, this.fallback]) {
      if (table !== undefined) this.memory.drop(table);
    }
    this.fallback = undefined;
  }

  /** Requests that still hold this limit must not call it by the revision of its successor. */
  private freezeRevision(): void {
    this.edition = { revision: this.revision };
  }

  /** The limit that now stands for the same buckets. */
  latest(): BoundLimit {
    return this.successor.latest;
  }

  private endLeases(leaseRegistry: LeaseRegistry | undefined): void {
    const { leases, counters } = this;
    if (leases === undefined) return;
    leaseRegistry?.retire(leases);
    counters.leased += leases.decided;
    counters.leaseCalls += leases.calls;
  }

  /** From now on keys in demand may be leased, if the policy and its algorithm have it so. */
  leaseFrom(leaseRegistry: LeaseRegistry): void {
    if (this.leases !== undefined || this.table !== undefined || this.sync === 'exact') return;
    if (this.figures.algorithm !== AlgorithmCode.TokenBucket) return;
    this.leases = leaseRegistry.addLimit(this, this.sync);
  }

  /** The cost of a request, which must be one that can ever be paid. */
  costOf(cost: number | undefined): number {
    return cost === undefined || cost === this.defaultCost
      ? this.defaultCost
      : this.checkedCost(cost);
  }

  private checkedCost(cost: number): number {
    if (typeof cost === 'number' && cost > this.figures.capacity) {
      throw new CostExceedsLimitError(this.policy, cost, this.figures.capacity);
    }
    wholeCost(cost);
    if (cost > this.largestCost) this.largestCost = cost;
    return cost;
  }

  /**
   * The tokens that a request of that cost takes now: more under load, and never more than there can be. So rate and
   * burst shrink together and at once, and no bucket has to be changed; every algorithm takes parts of a token.
   */
  charge(cost: number): number {
    return this.load === undefined
      ? cost
      : Math.min(cost / this.load.factor, this.figures.capacity);
  }

  /** How long a remembered denial makes `cost` wait; undefined if only the store knows. */
  waitAfter(denial: Denial, cost: number, now: number): number | undefined {
    const more = cost - denial.cost;
    const { perMicro, perToken } = this.figures;
    if (more > 0 && perMicro === 0) return undefined;
    return denial.dueMicros - now + (more > 0 ? Math.ceil((more * perToken) / perMicro) : 0);
  }

  /** This node's share of the limit, for while the store is away. */
  fallbackTable(nodes: number): BucketTable {
    if (this.successor.latest !== this) return this.successor.latest.fallbackTable(nodes);
    const { fallback } = this;
    const fits = fallback !== undefined && fallback.limit.capacity >= this.largestCost;
    if (fits && this.fallbackNodes === nodes) return fallback;
    const share = this.share(nodes);
    this.fallbackNodes = nodes;
    // Another share, but the same buckets: what was used stays used.
    if (fallback !== undefined) fallback.changeLimit(share);
    else if (this.isRetired) this.fallback = BucketTable.uncounted(share);
    else this.fallback = this.memory.open(share, this.overflowBuckets);
    return this.fallback!;
  }

  /** Tokens of a key have passed by share, and the store does not know. */
  owe(key: string, tokens: number, usedAtMicros: number): void {
    (this.owed ??= new OwedTokens(this.maxKeys)).add(key, tokens, usedAtMicros);
  }

  /** The report of tokens of a key that the store does not know of; from then on none is owed. */
  takeDebt(key: string, clock: { now(): number }): RemoteCall | undefined {
    const limit = this.latest();
    // Every answer of the store comes by here, and next to none finds anything owed.
    if (limit.owed === undefined || limit.owed.isEmpty) return undefined;
    const checks = limit.takeOwed(key, clock.now());
    return checks.length > 0 ? new OwedDebt(checks) : undefined;
  }

  /**
   * Once the store's bucket has had the time to become full, its further refill was lost, and tokens that the share
   * got back since were used for good.
   */
  private takeOwed(key: string, now: number): DebtCheck[] {
    const owed = this.owed?.take(key);
    if (owed === undefined) return [];
    const { figures, fallback } = this;
    const isLong = now - owed.sinceMicros >= windowMsOf(figures) * 1000;
    let most = isLong ? (fallback?.missing(key, now) ?? 0) : figures.capacity;
    const checks: DebtCheck[] = [];
    for (const { tokens, usedAtMicros } of owed.used.reverse()) {
      const cost = Math.min(tokens, most);
      if (cost > 0) checks.push({ limit: this, key, cost, usedAtMicros });
      most -= cost;
    }
    return checks;
  }

  /** Forgets denials and debts that are over, of keys without further requests. */
  sweep(now: number): void {
    this.denials.sweep(now);
    const recovered = now - windowMsOf(this.figures) * 1000;
    this.owed?.sweep((key, { sinceMicros }) => {
      return sinceMicros <= recovered && !((this.fallback?.missing(key, now) ?? 0) > 0);
    });
  }

  /** True if nothing of it would be missed: no tokens are held, and every bucket here is as new. */
  isAtRest(now: number): boolean {
    const tables = [this.table, this.fallback];
    const areNew = tables.every((table) => table === undefined || table.hasRecovered(now));
    return areNew && (this.leases === undefined || this.leases.size === 0);
  }

  private share(nodes: number): Limit {
    return nodeShareOf(this.figures, nodes, this.largestCost);
  }

  /** Times that a key had to share a bucket of this process. */
  get overflowed(): number {
    return (this.table?.overflowed ?? 0) + (this.fallback?.overflowed ?? 0);
  }

  /** Counts an outcome for a key and describes it; `limit` may be a share of the own one. */
  decide(
    key: string,
    limit: Limit,
    outcome: Readonly<Outcome>,
    clock: Pick<Clock, 'epochMs'>,
    source: DecisionSource,
  ): Decision {
    this.count(key, outcome.allowed, source);
    const decision = this.describe(limit, outcome, clock, source);
    if (outcome.allowed && decision.remaining < limit.capacity * SCARCE) this.counters.scarce++;
    return decision;
  }

  count(key: string, passed: boolean, source: DecisionSource): void {
    if (passed) return this.counters.allow(source);
    if (this.shadow) return this.counters.watch(source);
    this.counters.deny(source);
    if (--this.deniedKeys.untilNextNote <= 0) this.deniedKeys.note(this.policy, key, source);
  }

  /** The decision on a value that is not in demand, and of which this is the estimate. */
  passCold(estimate: number, outcome: Outcome, clock: Pick<Clock, 'epochMs'>): Decision {
    this.counters.cold++;
    this.counters.allow('local');
    return this.describeCold(estimate, outcome, clock);
  }

  describeCold(estimate: number, outcome: Outcome, clock: Pick<Clock, 'epochMs'>): Decision {
    outcome.allowed = true;
    outcome.level = (this.figures.capacity - estimate) * this.figures.perToken;
    outcome.waitMicros = 0;
    const decision = copyOf(this.describe(this.figures, outcome, clock, 'local'));
    decision.cold = true;
    return decision;
  }

  private withMore(decision: Decision): Decision {
    const { load, windowMs } = this;
    const isWhole = load === undefined || load.factor === 1;
    if (isWhole && windowMs === undefined) return decision;
    const told = copyOf(decision);
    if (windowMs !== undefined) told.windowMs = windowMs;
    if (isWhole) return told;
    told.limit = Math.floor(told.limit * load.factor + ROUNDING);
    told.remaining = Math.floor(told.remaining * load.factor + ROUNDING);
    return told;
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
    const resetMs = this.algorithm.resetMs(limit, outcome);
    const decision: DecisionCopy = {
      allowed: passes,
      remaining: level < limit.perToken ? 0 : Math.floor(level / limit.perToken),
      limit: limit.capacity,
      delayMs: allowed && !this.shadow ? waitMs : 0,
      retryAfterMs: passes ? 0 : waitMs,
      // A bucket that owes tokens has a level of zero, and longer to go than that level means.
      resetMs: waitMs > resetMs ? waitMs : resetMs,
      timestampMs: clock.epochMs(nowMicros),
      policy: this.policy,
      tier: 'policy',
      source,
    };
    if (passes && !allowed) decision.isPassedOver = true;
    return this.tells ? this.withMore(decision) : decision;
  }
}

/** A debt that stays one if it gets lost on its way. */
class OwedDebt extends Debt {
  constructor(private readonly owed: readonly DebtCheck[]) {
    super(owed);
  }

  unanswered(): void {
    for (const { limit, key, cost, usedAtMicros } of this.owed) {
      limit.latest().owe(key, cost, usedAtMicros);
    }
  }
}

/** Products of a factor like 0.55, which no double has exactly, must not fall below a whole number. */
const ROUNDING = 1e-9;

/** How long it takes until all tokens are back. A store forgets a bucket after twice that time. */
export function windowMsOf({ ttlMs, periodMicros }: Limit): number {
  return Math.round(periodMicros > 0 ? periodMicros / 1000 : ttlMs / 2);
}

/** The algorithm is part of the name: its state means nothing to another one. */
export function limitId(policy: PolicySettings, tier: string, limit: Limit): string {
  return `${policy.name}:${tier}:${limit.algorithm}`;
}
