import { type Limit } from '../algorithms/limit.js';
import { type Clock } from '../common/clock.js';
import { InvalidArgumentError, LimiterClosedError, UnknownPolicyError } from '../common/errors.js';
import { boundedKey, isPlainKey } from '../common/ids.js';
import { type HotValue } from '../local/hot-values.js';
import { type LeaseRegistry } from '../local/lease-registry.js';
import { type MemoryStore } from '../stores/memory/memory-store.js';
import { windowMsOf, type BoundCheck, type BoundLimit, type Edition } from './bound-limit.js';
import { type Decision } from './decision.js';
import { type Excess } from './excess.js';
import { DeniedKeys } from './denied-keys.js';
import { GivenRoom, type LimitInput } from './given-limits.js';
import { countersOf, type PolicyCounters } from './limit-counters.js';
import { type CheckedChange } from './limits-change.js';
import { PolicyBinder, type BoundPolicy, type OnIdleHot } from './policy-binder.js';
import { checkPolicy, type PolicySettings, type PolicyFields } from './policy-options.js';
import {
  isList,
  type Acquire,
  type LimitInfo,
  type PolicyInfo,
  type PolicyRequest,
  type QuotaRequest,
  type RateQuery,
} from './rate-limiter.js';

/** Stands where no policy was looked up yet; no request can name it. */
const NO_POLICY = { name: Symbol('no policy') } as unknown as BoundPolicy;

/** The policies by name, each tier tied to its store; turns requests into checks. */
export class PolicyRegistry {
  private readonly policies = new Map<string, BoundPolicy>();
  /** Policies that changes decide about, because the options or an earlier change named them. */
  private readonly governed: Set<string>;
  /** The policies of the latest change. */
  private installed: readonly PolicySettings[] = [];
  private readonly binder: PolicyBinder;
  private readonly room = new GivenRoom();
  /** The two that were looked up last: most requests name the same policy as those before, or the same two in turn. */
  private latest: BoundPolicy = NO_POLICY;
  private other: BoundPolicy = NO_POLICY;
  private closed = false;
  /** Some policy lets a part of what it denies pass. */
  hasExcess = false;
  /** Revision of the change that was installed last. */
  private readonly edition = { revision: 0 };

  constructor(
    policies: Readonly<Record<string, PolicyFields>>,
    memory: MemoryStore,
    hasRemote: boolean,
    maxKeys: number,
    private readonly clock: Pick<Clock, 'now'>,
    onIdleHot?: OnIdleHot,
    /** The keys that are denied most, under all policies. */
    readonly deniedKeys = new DeniedKeys(),
  ) {
    this.binder = new PolicyBinder(memory, hasRemote, maxKeys, this.room, deniedKeys, onIdleHot);
    this.define(policies);
    this.governed = new Set(this.policies.keys());
    for (const policy of this.policies.values()) join(policy, this.edition);
  }

  get revision(): number {
    return this.edition.revision;
  }

  /** The limit that a request falls under. */
  limitFor(request: PolicyRequest): BoundLimit {
    const { latest } = this;
    const policy = latest.name === request?.policy ? latest : this.lookFurther(request?.policy);
    const { tier, limit } = request;
    if (limit !== undefined) return this.givenFor(policy, limit, tier);
    return tier === undefined ? policy.base : (policy.tiers.get(tier) ?? policy.base);
  }

  /** Throws if a request to the policy, of that cost, cannot bring such figures along. */
  checkLimit(name: string, limit: LimitInput, cost?: number): void {
    this.lookUp(name).given.check(limit, cost);
  }

  private givenFor(policy: BoundPolicy, input: LimitInput, tier: string | undefined): BoundLimit {
    if (tier !== undefined) {
      throw new InvalidArgumentError('tier', tier, "none beside a 'limit': it takes its place");
    }
    const limit = policy.given.find(input, this.clock.now());
    if (limit !== undefined) return limit;
    policy.counters.defaulted++;
    return policy.base;
  }

  check(request: PolicyRequest): BoundCheck {
    const limit = this.limitFor(request);
    const key = keyOf(request);
    const ofKey = request.tier === undefined ? limit.ofValue(key) : limit;
    return { limit: ofKey, key, cost: ofKey.costOf(request.cost) };
  }

  checks(request: readonly PolicyRequest[]): BoundCheck[] {
    const checks: BoundCheck[] = [];
    for (const [index, one] of request.entries()) {
      const check = this.check(one);
      for (let same = 0; same < index; same++) {
        if (checks[same]!.limit !== check.limit || checks[same]!.key !== check.key) continue;
        throw new InvalidArgumentError(
          `request[${index}]`,
          one,
          `each policy and key once; this is also request[${same}], so add the costs up`,
        );
      }
      checks.push(check);
    }
    return checks;
  }

  /** All of them or, if one is wrong or its name taken, none. */
  define(policies: Readonly<Record<string, PolicyFields>>): void {
    const names = Object.keys(policies);
    const taken = names.find((name) => this.policies.has(name));
    if (taken !== undefined) {
      throw new InvalidArgumentError('policies', taken, 'a name that no other policy has');
    }
    const checked = names.map((name) => checkPolicy(name, policies[name]!));
    const now = this.clock.now();
    for (const policy of checked) {
      this.policies.set(policy.name, this.binder.bind(policy, undefined, now));
    }
    this.lookForExcess();
  }

  /**
   * Puts a whole set of checked policies in the place of those that changes decide about, all at one
   * instant. Returns the ids of limits that are no longer, or no longer the same.
   */
  install(
    change: Pick<CheckedChange, 'checked' | 'removed'>,
    revision: number,
  ): ReadonlySet<string> {
    const now = this.clock.now();
    const { checked: set, removed } = change;
    const { policies, governed, binder, edition } = this;
    const ended = new Set<string>();
    for (const [place, policy] of set.entries()) {
      if (policy === this.installed[place]) continue;
      const { name } = policy;
      const before = policies.get(name);
      const past = before === undefined ? [] : [...limitsOf(before)];
      const bound = binder.bind(policy, before, now);
      join(bound, edition);
      governed.add(name);
      if (bound === before) continue;
      const going = new Set(limitsOf(bound));
      for (const limit of past) if (!going.has(limit)) ended.add(limit.id);
      policies.set(name, bound);
    }
    for (const name of removed) if (policies.has(name)) governed.add(name);
    if (governed.size > set.length) this.remove(set, ended);
    this.installed = set;
    this.lookForExcess();
    edition.revision = revision;
    this.latest = NO_POLICY;
    this.other = NO_POLICY;
    return ended;
  }

  private lookForExcess(): void {
    this.hasExcess = [...this.policies.values()].some(({ excess }) => excess !== undefined);
  }

  /**
   * The checks to make in the place of those that were denied; undefined if not all of them may pass so. Each
   * denial counts as excess of its tier.
   */
  checksOver(
    { checks }: SplitRequest,
    denials: readonly Decision[],
  ): readonly BoundCheck[] | undefined {
    const over = new Map<BoundCheck, BoundCheck>();
    let arePassing = true;
    for (const { policy, tier } of denials) {
      const those = checks.filter(({ limit }) => tier === 'policy' && limit.policy === policy);
      const instead = those.length === 1 ? this.excessOf(policy)?.checkFor(those[0]!) : undefined;
      if (instead === undefined) arePassing = false;
      else over.set(those[0]!, instead);
    }
    return arePassing ? checks.map((check) => over.get(check) ?? check) : undefined;
  }

  /** The request as its tokens were taken: from the excess, where a tier had none left. */
  splitAsTaken(split: SplitRequest, decision: Decision): SplitRequest {
    if (!this.hasExcess) return split;
    const parts = decision.decisions ?? [decision];
    const checks = split.checks.map((check) => {
      const { policy } = check.limit;
      const isOver = parts.some((part) => part.policy === policy && part.isPassedOver === true);
      return (isOver ? this.excessOf(policy)?.instead(check.cost) : undefined) ?? check;
    });
    return { ...split, checks };
  }

  private excessOf(policy: string): Excess | undefined {
    return this.policies.get(policy)?.excess;
  }

  /** Removes policies that changes decide about and that are in no set any more. */
  private remove(set: readonly PolicySettings[], ended: Set<string>): void {
    const { policies, governed, binder } = this;
    const names = new Set(set.map(({ name }) => name));
    for (const name of governed) {
      if (names.has(name)) continue;
      const policy = policies.get(name)!;
      for (const { id } of limitsOf(policy)) ended.add(id);
      binder.end(policy);
      policies.delete(name);
      governed.delete(name);
    }
  }

  info(name: string): PolicyInfo | undefined {
    const policy = this.policies.get(name);
    if (policy === undefined) return undefined;
    const tiers = new Map(
      Array.from(policy.tiers, ([tier, { figures }]) => [tier, infoOf(figures)]),
    );
    const { figures, table, failureMode } = policy.base;
    const isOurs = table !== undefined;
    return { name, tiers, base: infoOf(figures), failureMode: isOurs ? undefined : failureMode };
  }

  names(): string[] {
    return [...this.policies.keys()];
  }

  /** From now on there is no policy, and every request gets a LimiterClosedError. */
  close(): void {
    this.closed = true;
    this.latest = NO_POLICY;
    this.other = NO_POLICY;
  }

  /** From now on hot keys may be leased, also those of policies that come later. */
  leaseFrom(leaseRegistry: LeaseRegistry): void {
    this.binder.leaseRegistry = leaseRegistry;
    for (const limit of this.limits()) limit.leaseFrom(leaseRegistry);
  }

  /** Forgets denials and debts that are over, and figures that no request brings any more. */
  sweep(now: number): void {
    for (const limit of this.limits()) limit.sweep(now);
    this.room.sweep(now);
  }

  counters(): Record<string, PolicyCounters> {
    const all: Record<string, PolicyCounters> = {};
    for (const policy of this.policies.values()) {
      const { name, counters } = policy;
      const sum = countersOf(counters);
      for (const { overflowed, leases } of limitsOf(policy)) {
        sum.overflowed += overflowed;
        sum.leased += leases?.decided ?? 0;
        sum.leaseCalls += leases?.calls ?? 0;
      }
      all[name] = sum;
    }
    return all;
  }

  /** The values of a policy that are most in demand here, of all its tiers. */
  hotValues(name: string, count: number): HotValue[] {
    const now = this.clock.now();
    return Array.from(this.lookUp(name).tiers.values(), ({ hot }) => hot?.top(count, now) ?? [])
      .flat()
      .sort((one, other) => other.perPeriod - one.perPeriod)
      .slice(0, count);
  }

  /** The rate of all tiers together; undefined if the policy does not tell values in demand from others. */
  currentRate({ policy, key, tier }: RateQuery): number | undefined {
    const now = this.clock.now();
    const { tiers } = this.lookUp(policy);
    const asked = tier === undefined ? [...tiers.values()] : [tiers.get(tier)];
    const gates = asked.flatMap((limit) => limit?.hot ?? []);
    if (gates.length === 0) return undefined;
    return gates.reduce((sum, gate) => sum + gate.rateOf(key, now), 0);
  }

  /** The number of values in demand of each policy with `hot`. */
  hotCounts(): Record<string, number> {
    const now = this.clock.now();
    const counts: Record<string, number> = {};
    for (const { name, tiers } of this.policies.values()) {
      for (const { hot } of tiers.values()) {
        if (hot !== undefined) counts[name] = (counts[name] ?? 0) + hot.inDemand(now);
      }
    }
    return counts;
  }

  get isAdaptive(): boolean {
    for (const { settings } of this.policies.values()) if (settings.adaptive) return true;
    return false;
  }

  /** From now on requests to adaptive policies cost `1 / factor` times as much. */
  load(factor: number): void {
    this.binder.load.factor = factor;
  }

  countAnonymous(policy: string): void {
    const bound = this.policies.get(policy);
    if (bound !== undefined) bound.counters.anonymous++;
  }

  private lookUp(name: string | undefined): BoundPolicy {
    if (this.closed) throw new LimiterClosedError();
    const policy = name === undefined ? undefined : this.policies.get(name);
    if (policy === undefined) throw new UnknownPolicyError(name, [...this.policies.keys()]);
    this.other = this.latest;
    this.latest = policy;
    return policy;
  }

  private lookFurther(name: string | undefined): BoundPolicy {
    const { other } = this;
    return other.name === name ? other : this.lookUp(name);
  }

  private *limits(): Iterable<BoundLimit> {
    for (const policy of this.policies.values()) yield* limitsOf(policy);
  }
}

function* limitsOf({ tiers, given, excess }: BoundPolicy): Iterable<BoundLimit> {
  yield* tiers.values();
  if (excess !== undefined) yield excess.limit;
  yield* given.limits();
}

/** From now on the policy is one of a configuration, and moves on with it. */
function join({ tiers, given, excess }: BoundPolicy, edition: Edition): void {
  for (const limit of tiers.values()) limit.followRevision(edition);
  excess?.limit.followRevision(edition);
  given.followRevision(edition);
}

function infoOf(limit: Limit): LimitInfo {
  return { capacity: limit.capacity, windowMs: windowMsOf(limit) };
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

/** A request split into checks of policies and quotas, each in its order. */
export interface SplitRequest {
  readonly checks: readonly BoundCheck[];
  readonly quotas: readonly QuotaRequest[];
}

const NO_QUOTAS: readonly QuotaRequest[] = [];
const isOfQuota = (one: PolicyRequest | QuotaRequest): one is QuotaRequest =>
  one?.app !== undefined;

/** Throws if any part of the request is invalid, so that nothing of it is taken or given back. */
export function splitRequest(
  request: Acquire,
  policies: PolicyRegistry,
  checkQuota: (quota: QuotaRequest) => void,
): SplitRequest {
  const requests = isList(request) ? request : [request];
  if (requests.length === 0) {
    throw new InvalidArgumentError('request', request, 'at least one policy and key, or app');
  }
  if (!requests.some(isOfQuota)) {
    return { checks: policies.checks(requests as readonly PolicyRequest[]), quotas: NO_QUOTAS };
  }
  const quotas = requests.filter(isOfQuota);
  const rules = requests.filter((one): one is PolicyRequest => one?.app === undefined);
  for (const quota of quotas) checkQuota(quota);
  return { checks: rules.length === 0 ? [] : policies.checks(rules), quotas };
}
