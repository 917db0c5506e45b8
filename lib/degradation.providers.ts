import { Logger, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import { ModuleRef, type HttpAdapterHost, type NestContainer } from '@nestjs/core';
import { SystemClock, type Clock } from './common/clock.js';
import { newNodeId } from './common/ids.js';
import { quoted, quotedError } from './common/quoted.js';
import { type ConfigConsumer, type ConfigSnapshot } from './config/rate-limit-config.js';
import { DegradationCore } from './degradation/core/degradation-core.js';
import { type DegradationInput } from './degradation/core/options.js';
import { DegradeExplorer, isBoundTwice } from './degradation/degrade.explorer.js';
import { RouteTable } from './limits/route-table.js';
import { Controllers } from './degradation/route-levels.js';
import { CredentialHeaders } from './degradation/credential-headers.js';
import { Degradation } from './degradation/degradation.js';
import { checkDegradeModule, type DegradeSettings } from './degradation/degrade-module-options.js';
import { DegradeRoutes, type DegradeRoutesParts } from './degradation/degrade-routes.js';
import { DegradeTransports } from './degradation/degrade-transport.js';
import { DegradeInterceptor } from './degradation/degrade.interceptor.js';
import { DegradedFilter } from './degradation/degraded.filter.js';
import { RouteWarming } from './degradation/route-warming.js';
import { isRedis, openAnswers } from './degradation/answer-stores.js';
import { HandlerExplorer } from './requests/handlers.js';
import { ModuleLog } from './rate-limit.log.js';
import { type RateLimitModuleOptions } from './rate-limit.options.js';
import { OPTIONAL_ADAPTER, OPTIONS, provide } from './requests/module-tokens.js';
import { GrpcDegradeTransport } from './transports/grpc/grpc-degrade.transport.js';
import { HttpDegradeTransport } from './transports/http/http-degrade.transport.js';
import { PROBLEM_BASE } from './transports/http/problem.js';
import { NestDegradeTransports } from './transports/nest-degrade-transports.js';
import { MessageDegradeTransport } from './transports/rpc/message-degrade.transport.js';

/** Everything that `@Degrade` needs, made once for an application, when the first one is met. */
export class DegradeParts implements OnApplicationShutdown, ConfigConsumer {
  readonly routes: DegradeRoutes;
  private readonly clock: Clock;
  private readonly settings: DegradeSettings;
  private figures: DegradationInput;
  private opened: DegradationCore | undefined;
  private made: DegradeRoutesParts | undefined;

  constructor(
    private readonly options: RateLimitModuleOptions,
    private readonly table: RouteTable,
    private readonly modules: ModuleRef,
    private readonly explorer: Pick<HandlerExplorer, 'pathsOf'>,
    private readonly log: Pick<ModuleLog, 'recovery' | 'hiddenError' | 'unnamedCaller'>,
  ) {
    this.clock = options.clock ?? new SystemClock();
    this.settings = checkDegradeModule(options.degradation);
    this.figures = this.settings.core;
    const { service, store } = options;
    const owner = { service, isStoreShared: isRedis(store), isOff: !options.enabled };
    this.routes = new DegradeRoutes(() => this.routeParts(), owner);
  }

  prepare({ document }: ConfigSnapshot, previous: ConfigSnapshot | undefined): () => void {
    const { degradation } = document;
    if (previous !== undefined && previous.document.degradation === degradation) return () => {};
    const { probes, credentialHeaders } = this.options.degradation;
    const { core, patience } = checkDegradeModule({ ...degradation, probes, credentialHeaders });
    const commitCore = this.opened?.prepare(core);
    const commitPatience = this.routes.prepare(patience);
    return () => {
      this.figures = core;
      commitCore?.();
      commitPatience();
    };
  }

  get core(): DegradationCore {
    return (this.opened ??= this.open());
  }

  /** The resources that there are, if there is any `@Degrade`. */
  get resources(): string[] {
    return this.opened?.recoveries.names() ?? [];
  }

  onApplicationShutdown(): void {
    this.routes.close();
    this.opened?.close();
  }

  private open(): DegradationCore {
    const { clock, options, figures } = this;
    const nodeId = options.nodeId ?? newNodeId();
    const answers = openAnswers(options.enabled ? options.store : undefined, clock);
    const core = new DegradationCore({ options: figures, clock, nodeId, ...answers });
    core.recoveries.on('state', this.log.recovery);
    core.fallbacks.onFault = (resource = '(none)', level, error) => {
      this.log.hiddenError(`Level ${level} of ${quoted(resource)}`, error);
    };
    return core;
  }

  private routeParts(): DegradeRoutesParts {
    const { core, clock, table, settings, options } = this;
    const { recoveries, caches, fallbacks } = core;
    return (this.made ??= {
      ...{ table, recoveries, caches, fallbacks, clock, ...settings },
      controllers: new Controllers(this.modules),
      isBoundTwice,
      user: options.user,
      credentials: new CredentialHeaders(settings.credentialHeaders),
      unnamed: (route) => {
        caches.refuseUnnamed();
        this.log.unnamedCaller(route);
      },
      pathsOf: (type, handler) => this.explorer.pathsOf(type, handler),
      refused: refusals(),
      hidden: this.log.hiddenError,
    });
  }
}

export const degradationProviders: Provider[] = [
  provide(
    DegradeParts,
    [OPTIONS, RouteTable, ModuleRef, HandlerExplorer, ModuleLog],
    (
      options: RateLimitModuleOptions,
      table: RouteTable,
      modules: ModuleRef,
      explorer: HandlerExplorer,
      log: ModuleLog,
    ) => new DegradeParts(options, table, modules, explorer, log),
  ),
  provide(DegradeRoutes, [DegradeParts], ({ routes }: DegradeParts) => routes),
  provide(
    Degradation,
    [DegradeParts],
    (parts: DegradeParts) => new Degradation(() => parts.core, parts.routes, warmingOf(parts)),
  ),
  provide(DegradeTransports, [OPTIONS, ModuleRef, OPTIONAL_ADAPTER], transportsOf),
  DegradeInterceptor,
  DegradedFilter,
  provide(
    DegradeExplorer,
    [HandlerExplorer, DegradeRoutes],
    (explorer: HandlerExplorer, routes: DegradeRoutes) => new DegradeExplorer(explorer, routes),
  ),
];

function transportsOf(
  { problemBase = PROBLEM_BASE }: RateLimitModuleOptions,
  modules: ModuleRef,
  adapterHost: HttpAdapterHost | undefined,
): DegradeTransports {
  // Applications say it between the making of their parts and the first request.
  const { container } = modules as unknown as {
    container?: Pick<NestContainer, 'applicationConfig'>;
  };
  const versioning = () => container?.applicationConfig?.getVersioning();
  return new NestDegradeTransports({
    http: new HttpDegradeTransport(adapterHost, problemBase, versioning),
    grpc: new GrpcDegradeTransport(),
    rpc: new MessageDegradeTransport(),
  });
}

function warmingOf(parts: DegradeParts): RouteWarming {
  const logger = new Logger('RateLimitModule');
  return new RouteWarming({
    routes: () => parts.routes.all(),
    caches: () => parts.core.caches,
    failed: ({ resource, warmed, failed }, error) => {
      const first =
        error === undefined ? 'they have no answer, or none that is kept' : quotedError(error);
      logger.warn(
        `Warm-up of '${resource}': ${failed} of ${warmed + failed} questions failed: ${first}`,
      );
    },
  });
}

/** Once for each route: what is refused once is refused again. */
function refusals(): DegradeRoutesParts['refused'] {
  const logger = new Logger('RateLimitModule');
  const told = new Set<string>();
  return (route, { vary, type } = {}) => {
    if (told.has(route)) return;
    told.add(route);
    const why =
      vary !== undefined ? variesBy(vary) : type !== undefined ? isOfType(type) : NOT_TAKEN;
    logger.warn(`${route}: its answers are not kept for levels 1 and 2. ${why}`);
  };
}

const NOT_TAKEN =
  'They are over 1 MiB, no JSON, nested too deep, or instances of classes: for these say with ' +
  "'revive' how they are made of plain data, or return plain objects.";

/** They are the application's, but may be made of a caller's words. */
const LONGEST_NAME = 64;

function variesBy(header: string): string {
  if (header === '*') return "They say 'Vary: *', so nobody knows what they depend on.";
  const name = quoted(header, LONGEST_NAME);
  return `They say 'Vary' with ${name}, which is no part of their key: name it in 'vary' of @Degrade.`;
}

function isOfType(type: string): string {
  const name = quoted(type, LONGEST_NAME);
  return `Their handler has set 'Content-Type' to ${name}, which a copy would not have: say it with @Header.`;
}
