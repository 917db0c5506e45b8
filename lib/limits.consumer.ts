import { type ConfigConsumer, type ConfigSnapshot } from './config/rate-limit-config.js';
import { limitsOf } from './config/schema/limits-of.js';
import { UnknownAppError } from './common/errors.js';
import { type RoutePolicies } from './limits/route-policies.js';
import { type RouteTable } from './limits/route-table.js';
import { type RateLimiter } from './limiter/rate-limiter.js';
import { type RateLimitHeaders } from './transports/shared/rate-limit-headers.js';

/** Brings limits into force: what they are, how they are applied, and what callers are told of them. */
export class LimitsConsumer implements ConfigConsumer {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly routePolicies: RoutePolicies,
    private readonly routes: RouteTable,
    private readonly headers: RateLimitHeaders,
    /** The app that all requests are charged to, if it is one. */
    private readonly app: string | undefined,
  ) {}

  prepare({ revision, document }: ConfigSnapshot): () => void {
    const limits = limitsOf(document);
    const apps = limits.quota?.apps ?? {};
    if (this.app !== undefined && !Object.hasOwn(apps, this.app)) {
      throw new UnknownAppError(this.app, Object.keys(apps));
    }
    const { policies = {} } = document;
    const removed = this.routePolicies.missingIn(policies);
    const commitLimits = this.limiter.prepare({ revision, removed, ...limits });
    const commitPolicies = this.routePolicies.prepare(policies);
    this.routes.checkKeys((name) => [policies[name]?.key, policies[name]?.anonymous]);
    const commitCosts = this.routes.prepareCosts(limits.quota?.maxCost ?? 1, (name) => {
      const cost: unknown = policies[name]?.cost;
      return typeof cost === 'number' ? cost : undefined;
    });
    return () => {
      commitLimits();
      commitCosts();
      commitPolicies();
      this.routes.forgetFigures();
      this.headers.forgetFigures();
    };
  }
}
