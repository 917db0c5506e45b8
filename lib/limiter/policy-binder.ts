import { isSameLimit, type Limit } from '../algorithms/limit.js';
import { type LeaseRegistry } from '../local/lease-registry.js';
import { type MemoryStore } from '../stores/memory/memory-store.js';
import { BoundLimit, limitId, windowMsOf, type LoadFactor } from './bound-limit.js';
import { type DeniedKeys } from './denied-keys.js';
import { EXCESS, Excess } from './excess.js';
import { HotGate } from './hot-gate.js';
import { GivenLimits, type GivenRoom } from './given-limits.js';
import { LimitCounters } from './limit-counters.js';
import { type PolicySettings } from './policy-options.js';

/**
 * The bound limits of one policy: requests name a policy first, then one of its tiers, or bring figures along.
 * Options are in the settings; here is only what lives as long as the buckets do.
 */
export interface BoundPolicy {
  readonly name: string;
  readonly settings: PolicySettings;
  readonly tiers: ReadonlyMap<string, BoundLimit>;
  readonly base: BoundLimit;
  /** The limits that requests bring along. */
  readonly given: GivenLimits;
  readonly counters: LimitCounters;
  /** The part that may pass of the requests that its tiers deny. */
  readonly excess: Excess | undefined;
}

/** A thousand tables of limits that came with requests must not fill the memory. */
const GIVEN_OVERFLOW_BUCKETS = 512;

/** Called for a limit that is so small that no value passes without a bucket. */
export type OnIdleHot = (policy: string, limit: number, nodes: number) => void;

/** Ties policies to where their buckets live, and hands buckets over when a policy changes. */
export class PolicyBinder {
  /** From when it is set on, hot keys may be leased. */
  leaseRegistry: LeaseRegistry | undefined = undefined;
  /** The load of this process; all its adaptive limits go by it. */
  readonly load: LoadFactor = { factor: 1 };

  constructor(
    private readonly memory: MemoryStore,
    private readonly hasRemote: boolean,
    private readonly maxKeys: number,
    private readonly room: GivenRoom,
    private readonly deniedKeys: DeniedKeys,
    private readonly onIdleHot: OnIdleHot = () => {},
  ) {}

  /** Binds a policy in the place of the one `before`, if there was one. */
  bind(policy: PolicySettings, before: BoundPolicy | undefined, now: number): BoundPolicy {
    if (before?.settings === policy) return before;
    const counters = before?.counters ?? new LimitCounters();
    const tiers = new Map<string, BoundLimit>();
    for (const [tier, limit] of policy.limits) {
      const old = before?.tiers.get(tier);
      tiers.set(tier, this.bindTier(policy, tier, limit, counters, old, now));
    }
    const excess = this.excessOf(policy, counters, before?.excess, now);
    if (before !== undefined) this.release(before, tiers, excess);
    setExceptions(policy, tiers);
    const given = this.givenTo(policy, counters);
    if (before !== undefined) given.takeOver(before.given, now);
    return {
      name: policy.name,
      settings: policy,
      tiers,
      base: tiers.get(policy.defaultTier)!,
      given,
      counters,
      excess,
    };
  }

  /** Ends a policy, and its limits with it. */
  end(policy: BoundPolicy): void {
    this.release(policy);
    policy.given.release();
  }

  private givenTo(policy: PolicySettings, counters: LimitCounters): GivenLimits {
    return new GivenLimits(
      policy,
      (tier, limit, old, now) => this.bindTier(policy, tier, limit, counters, old, now, true),
      (limit) => limit.retire(this.leaseRegistry),
      this.room,
    );
  }

  /** Ends the limits of a policy that no tier of `kept` has taken over. */
  private release(
    policy: BoundPolicy,
    kept?: ReadonlyMap<string, BoundLimit>,
    excess?: Excess,
  ): void {
    for (const [tier, limit] of policy.tiers) {
      if (limit.latest() !== kept?.get(tier)) limit.retire(this.leaseRegistry);
    }
    const past = policy.excess?.limit;
    if (past !== undefined && past.latest() !== excess?.limit) past.retire(this.leaseRegistry);
  }

  private excessOf(
    policy: PolicySettings,
    counters: LimitCounters,
    before: Excess | undefined,
    now: number,
  ): Excess | undefined {
    if (policy.excess === undefined) return undefined;
    const { limit, parts } = policy.excess;
    const bound = this.bindTier(policy, EXCESS, limit, counters, before?.limit, now, true);
    return new Excess(bound, parts, before);
  }

  private bindTier(
    policy: PolicySettings,
    tier: string,
    limit: Limit,
    counters: LimitCounters,
    old: BoundLimit | undefined,
    now: number,
    isGiven = false,
  ): BoundLimit {
    if (old?.equals(policy, limit) === true) return old;
    const { memory, maxKeys, deniedKeys } = this;
    const isHere = !this.hasRemote || policy.scope === 'node';
    const goesOn = old?.id === limitId(policy, tier, limit) && (old.table !== undefined) === isHere;
    const figures = goesOn && isSameLimit(old.figures, limit) ? old.figures : limit;
    const overflowBuckets = isGiven ? GIVEN_OVERFLOW_BUCKETS : undefined;
    const own = isHere && !goesOn ? memory.open(limit, overflowBuckets) : undefined;
    const table = goesOn ? old.table : own;
    const shared = { memory, maxKeys, counters, deniedKeys };
    // Figures that come with requests may be a thousand sets, and each would need a table of its own.
    const hot = isGiven ? undefined : this.gateOf(policy, figures, old);
    const around = { ...shared, overflowBuckets, tellsWindow: isGiven, hot, load: this.load };
    const bound = new BoundLimit(policy, tier, figures, table, around);
    if (goesOn) bound.takeOver(old, this.leaseRegistry, now);
    if (this.leaseRegistry !== undefined) bound.leaseFrom(this.leaseRegistry);
    return bound;
  }

  /** Values that are in demand stay so when other options change. */
  private gateOf(
    { name, hotWidth }: PolicySettings,
    limit: Limit,
    old: BoundLimit | undefined,
  ): HotGate | undefined {
    if (hotWidth === undefined) return undefined;
    if (old?.figures === limit && old.hot?.width === hotWidth) return old.hot;
    const { capacity } = limit;
    return new HotGate(hotWidth, capacity, windowMsOf(limit) * 1000, (nodes) =>
      this.onIdleHot(name, capacity, nodes),
    );
  }
}

/** Requests without a tier have the default one, unless their value has another. */
function setExceptions(
  { defaultTier, tierOfValue }: PolicySettings,
  tiers: ReadonlyMap<string, BoundLimit>,
): void {
  const exceptions = new Map([...tierOfValue].map(([value, tier]) => [value, tiers.get(tier)!]));
  for (const [tier, limit] of tiers) {
    if (limit.hot !== undefined) limit.hot.alwaysHot = tierOfValue;
    limit.setExceptions(tier === defaultTier && exceptions.size > 0 ? exceptions : undefined);
  }
}
