import { type Provider } from '@nestjs/common';
import { APP_FILTER, MetadataScanner, ModulesContainer, type HttpAdapterHost } from '@nestjs/core';
import { SystemClock } from './common/clock.js';
import { withoutUndefined } from './common/validate.js';
import { ProtectionFilter, TurnedAway } from './protection/protection.filter.js';
import { RateLimiter } from './limiter/rate-limiter.js';
import { Protection } from './protection/protection.js';
import { ModuleLog } from './rate-limit.log.js';
import { type RateLimitModuleOptions } from './rate-limit.options.js';
import { ProtectionExplorer } from './protection/protection.explorer.js';
import { OPTIONAL_ADAPTER, OPTIONS, provide } from './requests/module-tokens.js';
import { bindToGateways, bindToMessageControllers } from './transports/class-filters.js';

/** What protects resources, and what answers for them when they are not to be had. */
export const protectionProviders: Provider[] = [
  provide(
    ProtectionExplorer,
    [ModulesContainer, MetadataScanner],
    (modules: ModulesContainer, scanner: MetadataScanner) =>
      new ProtectionExplorer(modules, scanner),
  ),
  provide(Protection, [OPTIONS, RateLimiter, ProtectionExplorer, ModuleLog], protectionOf),
  provide(
    TurnedAway,
    [OPTIONS],
    ({ clock }: RateLimitModuleOptions) => new TurnedAway(clock ?? new SystemClock()),
  ),
  ProtectionFilter,
  provide(
    APP_FILTER,
    [ProtectionFilter, ModulesContainer, MetadataScanner, OPTIONAL_ADAPTER],
    boundEverywhere,
  ),
];

function protectionOf(
  { protection: resources, clock, nodeId, enabled }: RateLimitModuleOptions,
  limiter: RateLimiter,
  explorer: ProtectionExplorer,
  log: ModuleLog,
): Protection {
  const parts = withoutUndefined({ clock, seed: nodeId, enabled });
  const protection = new Protection(resources, { ...parts, limiter });
  log.listenToProtection(protection);
  explorer.declareIn(protection);
  return protection;
}

/** Nest looks for filters when there is an error to answer, so requests that end well pay nothing. */
function boundEverywhere(
  filter: ProtectionFilter,
  modules: ModulesContainer,
  scanner: MetadataScanner,
  adapterHost: HttpAdapterHost | undefined,
): ProtectionFilter {
  bindToGateways(modules, filter);
  // Testing modules have it later; for a microservice that stands alone it is null, whatever types say.
  adapterHost?.init$.subscribe(() => {
    if (adapterHost.httpAdapter) bindToMessageControllers(modules, scanner, filter);
  });
  return filter;
}
