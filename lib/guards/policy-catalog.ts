import { InvalidArgumentError } from '../common/errors.js';
import { type PolicyInput } from '../limiter/policy-options.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type KeySettings } from './key-resolver.js';
import { splitPolicy, type AppliedPolicy, type RoutePolicy } from './route-policy.js';

/** The policies that routes may name, wherever they come from: the root, features, decorators. */
export class PolicyCatalog {
  private readonly policies = new Map<string, AppliedPolicy>();
  /** Those that stand in a decorator: nobody else can name them. */
  private readonly inline = new Set<string>();

  constructor(
    private readonly limiter: RateLimiter,
    private readonly settings: KeySettings,
  ) {}

  define(policies: Readonly<Record<string, RoutePolicy>>): void {
    const limits: Record<string, PolicyInput> = {};
    const applied = Object.entries(policies).map(([name, input]) => {
      const parts = splitPolicy(name, input, this.settings);
      limits[name] = parts.limit;
      return parts.applied;
    });
    this.limiter.define(limits);
    for (const policy of applied) this.policies.set(policy.name, policy);
  }

  defineInline(name: string, policy: RoutePolicy): AppliedPolicy {
    this.define({ [name]: policy });
    this.inline.add(name);
    return this.policies.get(name)!;
  }

  has(name: string): boolean {
    return this.policies.has(name);
  }

  /** `where` is who asks, for the message of the error. */
  get(name: string, where: string): AppliedPolicy {
    const policy = this.policies.get(name);
    if (policy !== undefined) return policy;
    const known = [...this.policies.keys()].filter((one) => !this.inline.has(one)).sort();
    throw new InvalidArgumentError(
      where,
      name,
      known.length === 0
        ? 'a policy, but there are none'
        : `one of the policies ${known.join(', ')}`,
    );
  }
}
