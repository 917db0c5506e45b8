import { Logger, type OnModuleInit } from '@nestjs/common';
import { type HttpAdapterHost } from '@nestjs/core';
import { type FoundHandler, type HandlerExplorer } from '../requests/handlers.js';
import { MESSAGE_PATTERN, PATH } from '../requests/nest-metadata.js';
import { type GuardReach } from './guard-reach.js';
import { entriesOf, skipOf } from './route-metadata.js';
import { type RoutePlan } from './route-plan.js';
import { type RouteTable } from './route-table.js';
import { UnmetLimits } from './unmet-limits.js';

/** Makes the plan of every limited handler at start, so that a fault of one is known then. */
export class RateLimitExplorer implements OnModuleInit {
  private readonly logger = new Logger('RateLimitModule');

  constructor(
    private readonly found: HandlerExplorer,
    private readonly routes: RouteTable,
    private readonly apply: readonly string[] | 'quota' | undefined,
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly reach: GuardReach | undefined,
    /** The module has a `tier` for all policies. */
    private readonly hasTier: boolean,
  ) {}

  private get appliesToAll(): boolean {
    return this.apply !== undefined;
  }

  onModuleInit(): void {
    this.routes.checkApplied();
    const unnamed = new Set<string>();
    const plans: RoutePlan[] = [];
    for (const found of this.found.handlers()) {
      const { type, handler, name } = found;
      const plan = this.planOf(found);
      if (plan !== undefined) plans.push(plan);
      if (plan?.isEmpty || (plan !== undefined && this.hasDecorator(found))) continue;
      if (Reflect.hasMetadata(MESSAGE_PATTERN, handler)) unnamed.add(`${type.name}.${name}`);
    }
    const unmet = new UnmetLimits(this.found);
    unmet.check(this.logger);
    if (!this.appliesToAll) unmet.warnOfIdleGuards(this.logger);
    this.routes.checkOverrides();
    if (this.reach?.reachesAll() === false) this.warnOfHybrid(this.apply!, [...unnamed]);
    if (!this.hasTier) this.warnOfIdleTiers(plans);
  }

  /** The plans of all handlers that serve requests of HTTP. */
  *httpPlans(): Iterable<FoundHandler & { readonly plan: RoutePlan }> {
    // Nest collects middleware before it initialises modules.
    this.routes.checkApplied();
    for (const found of this.found.handlers()) {
      const plan = Reflect.hasMetadata(PATH, found.handler) ? this.planOf(found) : undefined;
      if (plan !== undefined) yield { ...found, plan };
    }
  }

  /** Undefined for a handler without a limit. */
  private planOf(found: FoundHandler): RoutePlan | undefined {
    const { type, handler } = found;
    const isSkipped = (skipOf(type) ?? skipOf(handler)) !== undefined;
    const isLimited =
      this.hasDecorator(found) || isSkipped || (this.appliesToAll && this.found.serves(handler));
    return isLimited ? this.routes.planOf(type, handler) : undefined;
  }

  private hasDecorator({ type, handler }: FoundHandler): boolean {
    return entriesOf(type).length + entriesOf(handler).length > 0;
  }

  /** On routes; the limiter may be asked for a tier by name, and a choice may name one. */
  private warnOfIdleTiers(plans: readonly RoutePlan[]): void {
    const policies = new Set(plans.flatMap((plan) => plan.policies));
    for (const { name, tier, tiers } of policies) {
      if (tier !== undefined || tiers.size === 0) continue;
      this.logger.warn(
        `Policy '${name}': it has tiers (${[...tiers].join(', ')}), but nothing says which of them a request has, ` +
          "so all have the default tier. Give the policy a 'tier', or the module.",
      );
    }
  }

  /** A global guard does not reach a microservice that was connected without its configuration. */
  private warnOfHybrid(
    apply: readonly string[] | 'quota',
    messageHandlers: readonly string[],
  ): void {
    // A microservice that stands alone has null there, whatever the types say.
    const isHttp = Boolean(this.adapterHost?.httpAdapter);
    if (!isHttp || messageHandlers.length === 0) return;
    const decorators =
      apply === 'quota'
        ? '@RateLimit()'
        : apply.map((name) => `@RateLimit('${name}')`).join(' and ');
    this.logger.warn(
      `'apply' reaches ${messageHandlers.join(', ')} only if the microservice is connected with ` +
        `connectMicroservice(options, { inheritAppConfig: true }); or put ${decorators} on them.`,
    );
  }
}
