import { applyDecorators, UseFilters, UseInterceptors } from '@nestjs/common';
import { setHandsOver } from '../limits/route-metadata.js';
import { checkDegradeOptions } from './degrade-check.js';
import { setDegrade, type DegradeOptions } from './degrade-options.js';
import { DegradeInterceptor } from './degrade.interceptor.js';
import { DegradedFilter } from './degraded.exception.js';
import { onClassOrMethod } from '../requests/nest-metadata.js';

/**
 * Gives callers the best answer still possible when a handler is over its limit, fails, or is slow:
 * 1 from the shared cache, 2 from the cache of this process, 3 a simplified one, 4 a default.
 *
 * On a class it holds for its handlers; options of a method go before. It brings its
 * interceptor along, which is the innermost: it keeps the handler's own result, and
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
