import {
  RequestMethod,
  type ExecutionContext,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import { ApplicationConfig, ModuleRef } from '@nestjs/core';
import { SystemClock, type Clock } from '../common/clock.js';
import { newNodeId } from '../common/ids.js';
import { quoted } from '../common/quoted.js';
import { RedisStoreOptions, type StoreInput } from '../limiter/options.js';
import { RouteTable } from '../limits/route-table.js';
import { Protection } from '../protection/protection.js';
import { HandlerExplorer } from '../requests/handlers.js';
import { OPTIONS, provide } from '../requests/module-tokens.js';
import { connectRedis } from '../stores/redis/connection.js';
import { RedisProbeLease } from '../stores/redis/redis-probe-lease.js';
import { connectionBeside, RedisSharedCache } from '../stores/redis/redis-shared-cache.js';
import {
  DegradationCore,
  type DegradationDeps,
  type DegradationStats,
} from './core/degradation-core.js';
import { type DegradationInput } from './core/options.js';
import { CredentialHeaders } from './credential-headers.js';
import { DegradationLog } from './degradation.log.js';
import { Degradation } from './degradation.js';
import {
  checkDegradeModule,
  type DegradeModuleInput,
  type DegradeSettings,
} from './degrade-module-options.js';
import { DegradeRoutes, type DegradeRoutesDeps } from './degrade-routes.js';
import { DegradedFilter } from './degraded.exception.js';
import { DegradeExplorer, isBoundTwice } from './degrade.explorer.js';
import { DegradeInterceptor } from './degrade.interceptor.js';
import { Controllers } from './route-levels.js';
import { RouteWarming } from './route-warming.js';

/** The module's options, as far as degradation reads them. */
interface DegradationModuleOptions {
  readonly degradation: DegradeModuleInput;
  readonly enabled: boolean;
  readonly store?: StoreInput;
  readonly service?: string;
  readonly nodeId?: string;
  readonly clock?: Clock;
  readonly user?: (context: ExecutionContext) => unknown;
}

/** A snapshot of the configuration, as far as degradation reads it. */
interface DegradationSnapshot {
  readonly document: { readonly degradation?: DegradeModuleInput };
}

/** Everything that `@Degrade` needs, made once for an application, when the first one is met. */
export class DegradationRuntime implements OnApplicationShutdown {
  readonly routes: DegradeRoutes;
  private readonly clock: Clock;
  private readonly settings: DegradeSettings;
  private figures: DegradationInput;
  private opened: DegradationCore | undefined;
  private made: DegradeRoutesDeps | undefined;
  private stopListening = (): void => {};

  constructor(
    private readonly options: DegradationModuleOptions,
    private readonly table: RouteTable,
    private readonly modules: ModuleRef,
    private readonly explorer: Pick<HandlerExplorer, 'handlers' | 'pathsOf'>,
    private readonly log: DegradationLog,
    private readonly protection: Pick<Protection, 'on'>,
    private readonly config?: ApplicationConfig,
  ) {
    this.clock = options.clock ?? new SystemClock();
    this.settings = checkDegradeModule(options.degradation);
    this.figures = this.settings.core;
    const { service, store } = options;
    const owner = { service, isStoreShared: isRedis(store), isOff: !options.enabled };
    this.routes = new DegradeRoutes(() => this.routeDeps(), owner);
  }

  /** Checks the section of a snapshot; the result brings it into force, and cannot fail. */
  prepare({ document }: DegradationSnapshot, previous?: DegradationSnapshot): () => void {
    const { degradation } = document;
    if (previous !== undefined && previous.document.degradation === degradation) return () => {};
    const { probes, credentialHeaders } = this.options.degradation;
    const { core, deadlines } = checkDegradeModule({ ...degradation, probes, credentialHeaders });
    const commitCore = this.opened?.prepare(core);
    const commitDeadlines = this.routes.prepare(deadlines);
    return () => {
      this.figures = core;
      commitCore?.();
      commitDeadlines();
    };
  }

  get core(): DegradationCore {
    return (this.opened ??= this.open());
  }

  /** The counts, if there is any `@Degrade`; `core` would open connections that an application without one does not need. */
  get openedStats(): DegradationStats | undefined {
    return this.opened?.stats();
  }

  /** The names of the resources, if there is any `@Degrade`. */
  get resources(): string[] {
    return this.opened?.recoveries.names() ?? [];
  }

  onApplicationShutdown(): void {
    this.routes.close();
    this.stopListening();
    this.opened?.close();
  }

  private open(): DegradationCore {
    const { clock, options, figures } = this;
    const nodeId = options.nodeId ?? newNodeId();
    const answers = answerStoresOf(options.enabled ? options.store : undefined, clock);
    const core = new DegradationCore({ options: figures, clock, nodeId, ...answers });
    core.recoveries.on('state', this.log.recovery);
    this.stopListening = this.protection.on('breaker', ({ resource, to, observed }) => {
      // Requests would find out one by one; a resource without @Degrade has nothing to fall back to.
      if (to !== 'open' || observed || !core.recoveries.names().includes(resource)) return;
      core.recoveries.of(resource).trip('breaker');
    });
    core.fallbacks.onFault = (resource = '(none)', level, error) => {
      this.log.hiddenError(`Level ${level} of ${quoted(resource)}`, error);
    };
    return core;
  }

  private routeDeps(): DegradeRoutesDeps {
    const { core, clock, table, settings, options, log } = this;
    const { recoveries, caches, fallbacks } = core;
    return (this.made ??= {
      ...{ table, recoveries, caches, fallbacks, clock, ...settings },
      controllers: new Controllers(this.modules),
      isBoundTwice,
      user: options.user,
      credentials: new CredentialHeaders(settings.credentialHeaders),
      unnamed: (route) => {
        caches.skipUnnamed();
        log.unnamedCaller(route);
      },
      pathsOf: (type, handler) => this.explorer.pathsOf(type, handler),
      pathsBeside: (isLeftOut) =>
        [...this.explorer.handlers()]
          .filter(({ type, handler }) => !isLeftOut(type, handler))
          .flatMap(({ type, handler }) => this.explorer.pathsOf(type, handler))
          .filter(({ method }) => method === RequestMethod.GET || method === RequestMethod.ALL),
      pathConfig: this.config,
      notKept: log.notKept,
      hidden: log.hiddenError,
    });
  }
}

/**
 * Where a fleet keeps answers and agrees on who probes: in the store that it shares, by a connection of
 * its own, so that a large answer never stands in front of a decision. A process by itself has no such place.
 */
function answerStoresOf(
  store: StoreInput | undefined,
  clock: Clock,
): Pick<DegradationDeps, 'shared' | 'lease'> {
  if (!isRedis(store)) return {};
  const { prefix = new RedisStoreOptions().prefix } = store;
  const client =
    store.client === undefined ? connectRedis(store).client : connectionBeside(store.client);
  return {
    shared: new RedisSharedCache({ client, prefix, isOwned: true }, clock),
    lease: new RedisProbeLease({ client, prefix }, clock),
  };
}

/** Whether other processes, and maybe other services, keep their answers in the same place. */
function isRedis(store: StoreInput | undefined): store is Extract<StoreInput, { type: 'redis' }> {
  return typeof store === 'object' && store.type === 'redis';
}

export const degradationProviders: Provider[] = [
  provide(
    DegradationLog,
    [OPTIONS],
    ({ clock }: DegradationModuleOptions) => new DegradationLog(clock ?? new SystemClock()),
  ),
  provide(
    DegradationRuntime,
    [
      ...[OPTIONS, RouteTable, ModuleRef, HandlerExplorer, DegradationLog, Protection],
      { token: ApplicationConfig, optional: true },
    ],
    (
      options: DegradationModuleOptions,
      table: RouteTable,
      modules: ModuleRef,
      explorer: HandlerExplorer,
      log: DegradationLog,
      protection: Protection,
      config: ApplicationConfig | undefined,
    ) => new DegradationRuntime(options, table, modules, explorer, log, protection, config),
  ),
  provide(DegradeRoutes, [DegradationRuntime], ({ routes }: DegradationRuntime) => routes),
  provide(
    Degradation,
    [DegradationRuntime, DegradationLog],
    (parts: DegradationRuntime, { warmUpFailed }: DegradationLog) => {
      let made: RouteWarming | undefined;
      const warming = (): RouteWarming =>
        (made ??= new RouteWarming({
          routes: () => parts.routes.all(),
          caches: () => parts.core.caches,
          failed: warmUpFailed,
        }));
      const opened = (): DegradationStats | undefined => parts.openedStats;
      return new Degradation(() => parts.core, parts.routes, warming, opened);
    },
  ),
  DegradeInterceptor,
  DegradedFilter,
  provide(
    DegradeExplorer,
    [HandlerExplorer, DegradeRoutes],
    (explorer: HandlerExplorer, routes: DegradeRoutes) => new DegradeExplorer(explorer, routes),
  ),
];
