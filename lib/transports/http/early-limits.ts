import { type MiddlewareConsumer } from '@nestjs/common';
import { type RateLimitGuard } from '../../limits/rate-limit.guard.js';
import { RateLimitedException, RefusedException } from '../../requests/rejections.js';
import { type Transports } from '../../requests/transport.js';
import { type RoutePlan } from '../../limits/route-plan.js';
import { EarlyContext } from './early-context.js';
import { routeInfosOf } from '../../requests/route-infos.js';

type Class = abstract new (...args: never[]) => unknown;

/** A handler, and everything that is asked for its requests. */
export interface PlannedRoute {
  readonly module: Class;
  readonly type: Class;
  readonly handler: object;
  readonly plan: RoutePlan;
}

/**
 * Asks for the early policies of a route in a middleware, before any guard runs. The decision is
 * kept with the request, so the guard does not ask for them again.
 */
export class EarlyLimits {
  constructor(
    private readonly guard: Pick<RateLimitGuard, 'check'>,
    private readonly transports: Transports,
    private readonly applicationId: string,
  ) {}

  mount(consumer: MiddlewareConsumer, routes: Iterable<PlannedRoute>): void {
    for (const route of routes) {
      const early = route.plan.early();
      if (early === undefined) continue;
      const middleware = this.middlewareOf(route, early);
      const { module, type, handler } = route;
      consumer
        .apply(middleware)
        .forRoutes(...routeInfosOf(module, type, handler, this.applicationId));
    }
  }

  private middlewareOf({ type, handler }: PlannedRoute, early: RoutePlan) {
    return async (request: object, response: object, next: () => void): Promise<void> => {
      const context = new EarlyContext([request, response, next], type, handler);
      try {
        if (await this.guard.check(early, context)) next();
      } catch (error) {
        // What a policy's own `rejection` made is for the filters of the application.
        if (!(error instanceof RateLimitedException || error instanceof RefusedException)) {
          throw error;
        }
        this.transports.of(context).answer(error, context);
      }
    };
  }
}
