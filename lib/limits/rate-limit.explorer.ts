import { Logger, type OnModuleInit } from '@nestjs/common';
import { type HttpAdapterHost, type ModulesContainer } from '@nestjs/core';
import { entriesOf, skipOf } from './route-metadata.js';
import { type RoutePlan } from './route-plan.js';
import { type RouteTable } from './route-table.js';
import {
  MESSAGE_PATTERN,
  PATH,
  type FoundHandler,
  type HandlerExplorer,
} from '../requests/handlers.js';
import { UnmetLimits } from './unmet-limits.js';

/** Makes the plan of every limited handler at start, so that what is wrong with one is known then. */
export class RateLimitExplorer implements OnModuleInit {
  private readonly logger = new Logger('RateLimitModule');

  constructor(
    private readonly modules: ModulesContainer,
    private readonly found: HandlerExplorer,
    private readonly routes: RouteTable,
    private readonly appliesToAll: boolean,
    private readonly adapterHost: HttpAdapterHost | undefined,
  ) {}

  onModuleInit(): void {
    this.routes.checkApplied();
    const unnamed = new Set<string>();
    for (const found of this.found.handlers()) {
      const { type, handler, name } = found;
      const plan = this.planOf(found);
      if (plan?.isEmpty || (plan !== undefined && this.hasDecorator(found))) continue;
      if (Reflect.hasMetadata(MESSAGE_PATTERN, handler)) unnamed.add(`${type.name}.${name}`);
    }
    new UnmetLimits(this.modules, this.found).check(this.logger);
    this.warnOfHybrid([...unnamed]);
  }

  /** The plans of all handlers that serve requests of HTTP. */
  *httpPlans(): Iterable<FoundHandler & { readonly plan: RoutePlan }> {
    // Nest asks for middleware before it initialises modules.
    this.routes.checkApplied();
    for (const found of this.found.handlers()) {
      const plan = Reflect.hasMetadata(PATH, found.handler) ? this.planOf(found) : undefined;
      if (plan !== undefined) yield { ...found, plan };
    }
  }

  /** Undefined for what nobody has limited. */
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

  /** A global guard does not reach a microservice that was connected without its configuration. */
  private warnOfHybrid(messageHandlers: readonly string[]): void {
    // A microservice that stands alone has null there, whatever the types say.
    const isHttp = Boolean(this.adapterHost?.httpAdapter);
    if (!this.appliesToAll || !isHttp || messageHandlers.length === 0) return;
    this.logger.warn(
      `'apply' reaches ${messageHandlers.join(', ')} only if the microservice is connected with ` +
        'connectMicroservice(options, { inheritAppConfig: true }); or put @RateLimit() on them.',
    );
  }
}
