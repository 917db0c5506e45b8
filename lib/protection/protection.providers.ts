import { type Provider } from '@nestjs/common';
import { APP_FILTER, type HttpAdapterHost } from '@nestjs/core';
import { SystemClock, type Clock } from '../common/clock.js';
import { withoutUndefined } from '../common/validate.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { HandlerExplorer } from '../requests/handlers.js';
import { OPTIONAL_ADAPTER, OPTIONS, provide } from '../requests/module-tokens.js';
import { ProtectionExplorer } from './protection.explorer.js';
import { ProtectionFilter, TurnedAway } from './protection.filter.js';
import { ProtectionLog } from './protection.log.js';
import { Protection } from './protection.js';
import { type ResourcesInput } from './resource-options.js';

/** The module's options, as far as protection reads them. */
interface ProtectionModuleOptions {
  readonly protection: ResourcesInput;
  readonly enabled: boolean;
  readonly clock?: Clock;
  readonly nodeId?: string;
}

/** The protection of resources, and the filter that answers when it has rejected a request. */
export const protectionProviders: Provider[] = [
  provide(
    ProtectionExplorer,
    [HandlerExplorer],
    (explorer: HandlerExplorer) => new ProtectionExplorer(explorer),
  ),
  provide(
    ProtectionLog,
    [OPTIONS],
    ({ clock }: ProtectionModuleOptions) => new ProtectionLog(clock ?? new SystemClock()),
  ),
  provide(Protection, [OPTIONS, RateLimiter, ProtectionExplorer, ProtectionLog], protectionOf),
  provide(
    TurnedAway,
    [OPTIONS],
    ({ clock }: ProtectionModuleOptions) => new TurnedAway(clock ?? new SystemClock()),
  ),
  ProtectionFilter,
  provide(APP_FILTER, [ProtectionFilter, HandlerExplorer, OPTIONAL_ADAPTER], boundEverywhere),
];

function protectionOf(
  { protection: resources, clock, nodeId, enabled }: ProtectionModuleOptions,
  limiter: RateLimiter,
  explorer: ProtectionExplorer,
  log: ProtectionLog,
): Protection {
  const parts = withoutUndefined({ clock, seed: nodeId, enabled });
  const protection = new Protection(resources, { ...parts, limiter });
  log.listenTo(protection);
  explorer.declareIn(protection);
  return protection;
}

/** Nest looks for filters when there is an error to answer, so requests that end well pay nothing. */
function boundEverywhere(
  filter: ProtectionFilter,
  explorer: HandlerExplorer,
  adapterHost: HttpAdapterHost | undefined,
): ProtectionFilter {
  explorer.bindToGateways(filter);
  // Testing modules have it later; for a microservice that stands alone it is null, whatever types say.
  adapterHost?.init$.subscribe(() => {
    if (adapterHost.httpAdapter) explorer.bindToMessageControllers(filter);
  });
  return filter;
}
