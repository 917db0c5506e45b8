import { type LimitInfo, type RateLimiter } from '../limiter/rate-limiter.js';
import { type PerRequest } from './key-resolver.js';
import { type RouteFacts } from '../requests/transport.js';
import { type PolicyChoice } from './route-metadata.js';
import { type AppliedPolicy } from './route-policy.js';

export type PoliciesByName = ReadonlyMap<string, AppliedPolicy>;

/** Everything that a request to one handler is charged. */
export class RoutePlan implements RouteFacts {
  readonly isEmpty: boolean;
  /** Most routes: one policy, and nothing that depends on the request but its key. */
  readonly single: AppliedPolicy | undefined;
  /** The parts of it that guards further out ask for: that of the class, that of the application. */
  ofClass: RoutePlan = this;
  ofApp: RoutePlan = this;

  constructor(
    readonly id: string,
    readonly policies: readonly AppliedPolicy[],
    readonly choices: readonly PolicyChoice[],
    readonly usesQuota: boolean,
    readonly cost: PerRequest<number> | undefined,
    /** An interceptor answers denied requests. */
    readonly handsOver: boolean,
    private readonly limiter: RateLimiter,
    /** Shared with its parts: figures are forgotten in all at once. */
    private readonly known = new Map<string, LimitInfo>(),
    readonly nameOf = (policy: string): string => policy,
  ) {
    this.isEmpty = policies.length + choices.length === 0 && !usesQuota;
    const [first] = policies;
    const isSingle = policies.length === 1 && choices.length === 0 && !usesQuota;
    const isPlain = first !== undefined && !first.skipIf && !first.cost && cost === undefined;
    this.single = isSingle && isPlain ? first : undefined;
  }

  /** A policy by user is left to the guard that it stands at. */
  part(ofClass: PoliciesByName, ofMethod: PoliciesByName): void {
    this.ofClass = this.without(byUser(ofMethod));
    this.ofApp = this.ofClass.without(byUser(ofClass));
  }

  /**
   * The policies that are charged before all guards; undefined if there are none. This plan hands nothing
   * over: a request is stopped there for the sake of the guards behind.
   */
  early(): RoutePlan | undefined {
    const early = this.policies.filter((policy) => policy.early);
    if (early.length === 0) return undefined;
    const { id, cost, limiter, known, nameOf } = this;
    return new RoutePlan(id, early, [], false, cost, false, limiter, known, nameOf);
  }

  /** The limits are other ones from now on. */
  forgetFigures(): void {
    this.known.clear();
  }

  /** A decision names its policy and its capacity, which give the tier, or one with equal figures. */
  limitOf(policy: string, capacity: number): LimitInfo | undefined {
    const at = `${policy} ${capacity}`;
    let info = this.known.get(at);
    if (info !== undefined) return info;
    const all = this.limiter.policy(policy);
    info = all && [...all.tiers.values()].find((limit) => limit.capacity === capacity);
    if (info !== undefined) this.known.set(at, info);
    return info;
  }

  /** The same without some of its policies. */
  private without(names: ReadonlySet<string>): RoutePlan {
    if (names.size === 0) return this;
    const { id, choices, usesQuota, cost, handsOver, limiter, known, nameOf } = this;
    const rest = this.policies.filter(({ name }) => !names.has(name));
    return new RoutePlan(id, rest, choices, usesQuota, cost, handsOver, limiter, known, nameOf);
  }
}

/** The policies that have to know who is calling. */
function byUser(policies: PoliciesByName): Set<string> {
  return new Set([...policies.values()].filter((one) => one.needsUser).map(({ name }) => name));
}
