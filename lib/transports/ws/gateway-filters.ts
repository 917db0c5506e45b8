import { type ModulesContainer } from '@nestjs/core';
import { RateLimitFilter } from '../../guards/index.js';

/** What Nest makes of the decorators of a gateway, and of those for filters. */
const IS_GATEWAY = 'websockets:is_gateway';
const FILTERS = '__exceptionFilters__';

/**
 * Gateways meet the global guards of an application, but none of its global filters: each is given
 * this one as the outermost of its own. Before they are connected, which is before any hook runs.
 */
export function bindToGateways(modules: ModulesContainer, filter: RateLimitFilter): void {
  for (const { providers } of modules.values()) {
    for (const { metatype: type } of providers.values()) {
      if (typeof type !== 'function' || !Reflect.hasMetadata(IS_GATEWAY, type)) continue;
      const bound = (Reflect.getMetadata(FILTERS, type) ?? []) as unknown[];
      // Another application of the same process may have bound its own.
      const others = bound.filter((one) => !(one instanceof RateLimitFilter));
      Reflect.defineMetadata(FILTERS, [filter, ...others], type);
    }
  }
}
