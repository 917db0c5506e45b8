import { type ExecutionContext, type MiddlewareConsumer, type Type } from '@nestjs/common';
import { type RateLimitGuard } from '../../limits/rate-limit.guard.js';
import { type RoutePlan } from '../../limits/route-plan.js';
import { routeInfosOf } from '../../requests/handlers.js';
import { type Class } from '../../requests/nest-metadata.js';
import { RateLimitedException, RefusedException } from '../../requests/rejections.js';
import { type Transports } from '../../requests/transport.js';

/** A handler, and the plan of its requests. */
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
        // The error of a policy's own `rejection` is for the filters of the application.
        if (!(error instanceof RateLimitedException || error instanceof RefusedException)) {
          throw error;
        }
        this.transports.of(context).answer(error, context);
      }
    };
  }
}

/** The context of a guard for the request, as far as it is known in a middleware. */
export class EarlyContext implements ExecutionContext {
  constructor(
    private readonly args: readonly [request: object, response: object, next: () => void],
    private readonly type: unknown,
    private readonly handler: unknown,
  ) {}

  getClass<T>(): Type<T> {
    return this.type as Type<T>;
  }

  getHandler(): ReturnType<ExecutionContext['getHandler']> {
    return this.handler as ReturnType<ExecutionContext['getHandler']>;
  }

  getArgs<T extends unknown[]>(): T {
    return this.args as unknown as T;
  }

  getArgByIndex<T>(index: number): T {
    return this.args[index] as T;
  }

  getType<T extends string>(): T {
    return 'http' as T;
  }

  switchToHttp(): ReturnType<ExecutionContext['switchToHttp']> {
    const [request, response, next] = this.args;
    return {
      getRequest: <T>() => request as T,
      getResponse: <T>() => response as T,
      getNext: <T>() => next as T,
    };
  }

  switchToRpc(): never {
    throw new Error('an early policy is about a request of HTTP, not about a message');
  }

  switchToWs(): never {
    throw new Error('an early policy is about a request of HTTP, not about a message');
  }
}
