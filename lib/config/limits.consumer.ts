import { type ConfigConsumer, type ConfigSnapshot } from './rate-limit-config.js';
import { limitsOf } from './schema/limits-of.js';
import { UnknownAppError } from '../common/errors.js';
import { type RoutePolicies } from '../limits/route-policies.js';
import { type RouteTable } from '../limits/route-table.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';

/** Brings limits into force: their figures, how they are applied to requests, and the costs of routes. */
export class LimitsConsumer implements ConfigConsumer {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly routePolicies: RoutePolicies,
    private readonly routes: RouteTable,
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
    };
  }
}
