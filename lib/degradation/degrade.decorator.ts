import { applyDecorators, UseFilters, UseInterceptors } from '@nestjs/common';
import { setHandsOver } from '../limits/route-metadata.js';
import { checkDegradeOptions } from './degrade-check.js';
import { setDegrade, type DegradeOptions } from './degrade-options.js';
import { DegradeInterceptor } from './degrade.interceptor.js';
import { DegradedFilter } from './degraded.filter.js';
import { onClassOrMethod } from '../requests/nest-metadata.js';

/**
 * Gives callers the best answer still possible when a handler is over its limit, fails, or is slow:
 * 1 from the shared cache, 2 from the cache of this process, 3 a simplified one, 4 a default.
 *
 * On a class it says what holds for its handlers; what a method says goes before. It brings its
 * interceptor along, which is the innermost: what it keeps is what the handler returned, and
 * serialisers of the application run over what it gives.
 */
export function Degrade(options: DegradeOptions = {}): ClassDecorator & MethodDecorator {
  checkDegradeOptions('@Degrade', options);
  return applyDecorators(
    onClassOrMethod((target) => {
      setDegrade(target, options);
      setHandsOver(target);
    }),
    UseInterceptors(DegradeInterceptor),
    UseFilters(DegradedFilter),
  );
}
