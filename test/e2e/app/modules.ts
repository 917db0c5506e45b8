import { type DynamicModule, type ModuleMetadata, type Type } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-weir';
import { ManualClock } from '../../support/manual-clock.js';
import { limits } from './limits.js';
import { routesOf, type Shape } from './routes.js';

class AppModule {}

/** An application of routes in these shapes, with a clock and limits of its own. */
export function moduleOf(
  shapes: readonly Shape[],
  as: 'controllers' | 'providers',
  imports: NonNullable<ModuleMetadata['imports']> = [],
  others: readonly Type[] = [],
): DynamicModule {
  const clock = new ManualClock();
  return {
    module: AppModule,
    imports: [RateLimitModule.forRoot(limits(clock)), ...imports],
    [as]: [...shapes.flatMap((shape) => routesOf(shape, clock)), ...others],
  };
}
