import { type Limit } from '../algorithms/index.js';
import { InvalidArgumentError, LimiterClosedError, UnknownPolicyError } from '../common/errors.js';
import { boundedKey, isPlainKey } from '../common/ids.js';
import { type LeaseDesk } from '../local/lease-desk.js';
import { type MemoryStore } from '../stores/index.js';
import { type BoundCheck } from './remembered-denial.js';
import { BoundLimit, type LimitCounters } from './bound-limit.js';
import { checkPolicy, type CheckedPolicy, type PolicyInput } from './policy-options.js';
import { type LimitInfo, type PolicyInfo, type PolicyRequest } from './rate-limiter.js';

interface BoundPolicy {
  readonly name: string;
  readonly tiers: ReadonlyMap<string, BoundLimit>;
  readonly base: BoundLimit;
}

/** Stands where no policy was looked up yet; no request can name it. */
const NO_POLICY = { name: Symbol('no policy') } as unknown as BoundPolicy;

export type PolicyCounters = LimitCounters & {
  overflowed: number;
  leased: number;
  leaseCalls: number;
};

const NO_COUNTS: PolicyCounters = {
  allowed: 0,
  denied: 0,
  shadowDenied: 0,
  fallback: 0,
  overflowed: 0,
  leased: 0,
  leaseCalls: 0,
};

/** The policies by name, each tier tied to its store; turns requests into checks. */
export class PolicyBook {
  private readonly policies = new Map<string, BoundPolicy>();
  /** Most requests name the same policy as the one before. */
  private latest: BoundPolicy = NO_POLICY;
  private desk: LeaseDesk | undefined;
  private closed = false;

  constructor(
    policies: Readonly<Record<string, PolicyInput>>,
    private readonly memory: MemoryStore,
    private readonly hasRemote: boolean,
    private readonly maxKeys: number,
  ) {
    this.define(policies);
  }

  /** The limit that a request falls under. */
  limitFor(request: PolicyRequest): BoundLimit {
    const { latest } = this;
    const policy = latest.name === request?.policy ? latest : this.lookUp(request?.policy);
    const { tier } = request;
    return tier === undefined ? policy.base : (policy.tiers.get(tier) ?? policy.base);
  }

  check(request: PolicyRequest): BoundCheck {
    const shared = this.limitFor(request);
    return { shared, key: keyOf(request), cost: shared.costOf(request.cost) };
  }

  checks(request: readonly PolicyRequest[]): BoundCheck[] {
    const checks = request.map((one) => this.check(one));
    checks.forEach((check, index) => {
      const same = checks.findIndex(
        ({ shared, key }) => shared === check.shared && key === check.key,
      );
      if (same === index) return;
      throw new InvalidArgumentError(
        `request[${index}]`,
        request[index],
        `each policy and key once; this is also request[${same}], so add the costs up`,
      );
    });
    return checks;
  }

  /** All of them or, if one is wrong or its name taken, none. */
  define(policies: Readonly<Record<string, PolicyInput>>): void {
    const names = Object.keys(policies);
    const taken = names.find((name) => this.policies.has(name));
    if (taken !== undefined) {
      throw new InvalidArgumentError('policies', taken, 'a name that no other policy has');
    }
    const checked = names.map((name) => checkPolicy(name, policies[name]!));
    for (const policy of checked) this.bind(policy);
  }

  info(name: string): PolicyInfo | undefined {
    const policy = this.policies.get(name);
    if (policy === undefined) return undefined;
    const tiers = new Map(Array.from(policy.tiers, ([tier, { limit }]) => [tier, infoOf(limit)]));
    return { name, tiers, base: infoOf(policy.base.limit) };
  }

  names(): string[] {
    return [...this.policies.keys()];
  }

  /** From now on there is no policy, and every request is told why. */
  close(): void {
    this.closed = true;
    this.latest = NO_POLICY;
  }

  /** From now on hot keys may be leased, also those of policies that come later. */
  leaseFrom(desk: LeaseDesk): void {
    this.desk = desk;
    for (const limit of this.limits()) limit.leaseFrom(desk);
  }

  sweepDenials(now: number): void {
    for (const limit of this.limits()) limit.denials.sweep(now);
  }

  counters(): Record<string, PolicyCounters> {
    const all: Record<string, PolicyCounters> = {};
    for (const { name } of this.policies.values()) {
      all[name] = { ...NO_COUNTS };
    }
    for (const { policy, counters, overflowed, leases } of this.limits()) {
      const sum = all[policy]!;
      sum.allowed += counters.allowed;
      sum.denied += counters.denied;
      sum.shadowDenied += counters.shadowDenied;
      sum.fallback += counters.fallback;
      sum.overflowed += overflowed;
      sum.leased += leases?.decided ?? 0;
      sum.leaseCalls += leases?.calls ?? 0;
    }
    return all;
  }

  private lookUp(name: string | undefined): BoundPolicy {
    if (this.closed) throw new LimiterClosedError();
    const policy = name === undefined ? undefined : this.policies.get(name);
    if (policy === undefined) throw new UnknownPolicyError(name, [...this.policies.keys()]);
    this.latest = policy;
    return policy;
  }

  private *limits(): Iterable<BoundLimit> {
    for (const { tiers } of this.policies.values()) yield* tiers.values();
  }

  private bind(policy: CheckedPolicy): void {
    const { name } = policy;
    const isHere = !this.hasRemote || policy.options.scope === 'node';
    const tiers = new Map<string, BoundLimit>();
    for (const [tier, limit] of policy.limits) {
      const table = isHere ? this.memory.open(limit) : undefined;
      tiers.set(tier, new BoundLimit(policy, tier, limit, table, this.memory, this.maxKeys));
    }
    if (this.desk !== undefined) for (const limit of tiers.values()) limit.leaseFrom(this.desk);
    this.policies.set(name, { name, tiers, base: tiers.get(policy.defaultTier)! });
  }
}

/** A store forgets a bucket after twice the time that it takes to fill. */
function infoOf({ capacity, ttlMs, subWindows, perToken, tickMicros }: Limit): LimitInfo {
  const windowMs = subWindows > 0 ? (subWindows * perToken * tickMicros) / 1000 : ttlMs / 2;
  return { capacity, windowMs: Math.round(windowMs) };
}

/** The key as it is kept: checked, and of bounded length. */
export function keyOf(request: PolicyRequest): string {
  const { key } = request;
  return isPlainKey(key) ? key : unusualKey(key);
}

function unusualKey(key: unknown): string {
  if (typeof key !== 'string' || key.length === 0) {
    throw new InvalidArgumentError('key', key, 'a text that is not empty');
  }
  return boundedKey(key);
}
