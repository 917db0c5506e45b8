import { Global, Module, type Provider } from '@nestjs/common';
import { RoutePlan } from '../limits/route-plan.js';
import { RouteTable } from '../limits/route-table.js';
import { DegradeRoutes } from '../degradation/degrade-routes.js';
import { NoopRateLimiter } from '../limiter/noop-rate-limiter.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { Protection } from '../protection/protection.js';
import { RateLimitExplorer } from '../limits/rate-limit.explorer.js';
import { RateLimitModule } from '../rate-limit.module.js';
import { RATE_LIMIT_STAND_IN } from '../rate-limit.providers.js';

/** Knows every resource, and does nothing but the work. */
class Unprotected extends Protection {
  override has(): boolean {
    return true;
  }

  override declare(): void {}

  override checkValue(): void {}

  override run<T>(name: string, ...rest: Tail<Parameters<Protection['run']>>): Promise<T> {
    if (!super.has(name)) super.declare(name, {});
    return super.run(name, ...rest) as Promise<T>;
  }
}

type Tail<T extends readonly unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

const nothing = (): void => {};

const real = RateLimitModule.forRoot();

/** Nest takes the last of several providers of one thing. */
const standIns: Provider[] = [
  { provide: RateLimiter, useFactory: () => new NoopRateLimiter() },
  { provide: RouteTable, inject: [RateLimiter], useFactory: unlimitedRoutes },
  { provide: Protection, useFactory: () => new Unprotected() },
  { provide: DegradeRoutes, useValue: { of: nothing } },
  { provide: RateLimitExplorer, useValue: {} },
  { provide: RATE_LIMIT_STAND_IN, useValue: true },
];

/**
 * In the place of `RateLimitModule.forRoot()`, for tests that have to do with something else: the
 * decorators find all that they need, every policy, app and resource is known, and nothing is
 * limited, degraded or protected. `RateLimiter` and the others can be injected as usual.
 *
 *     Test.createTestingModule({ imports: [RateLimitTestingModule], controllers: [CatsController] })
 */
@Global()
@Module({
  imports: real.imports ?? [],
  providers: [...(real.providers ?? []), ...standIns],
  exports: real.exports ?? [],
})
export class RateLimitTestingModule {}

function unlimitedRoutes(limiter: RateLimiter): Pick<RouteTable, keyof RouteTable> {
  const unlimited = new RoutePlan('unlimited', [], [], false, undefined, false, limiter);
  return {
    ...{
      planOf: () => unlimited,
      checkApplied: nothing,
      forgetFigures: nothing,
      onNewFigures: nothing,
      checkKeys: nothing,
      checkOverrides: nothing,
    },
    prepareCosts: () => nothing,
  };
}
