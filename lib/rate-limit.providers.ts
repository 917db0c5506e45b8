import {
  Logger,
  type ExecutionContext,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import {
  APP_FILTER,
  APP_GUARD,
  MetadataScanner,
  ModuleRef,
  ModulesContainer,
  type HttpAdapterHost,
  type NestContainer,
} from '@nestjs/core';
import { SystemClock } from './common/clock.js';
import { durationMs } from './common/duration.js';
import { InvalidArgumentError } from './common/errors.js';
import { newNodeId } from './common/ids.js';
import { withoutUndefined } from './common/validate.js';
import { RateLimitConfig } from './config/rate-limit-config.js';
import { DegradeRoutes } from './degradation/degrade-routes.js';
import { ClusterQuota, RateLimiter } from './limiter/rate-limiter.js';
import { NoopRateLimiter } from './limiter/noop-rate-limiter.js';
import { createRateLimiter } from './limiter/create-rate-limiter.js';
import { AwaitedValues } from './limits/awaited-values.js';
import { GuardReach } from './limits/guard-reach.js';
import { RateLimitExplorer } from './limits/rate-limit.explorer.js';
import { RateLimitFilter } from './limits/rate-limit.filter.js';
import { AppRateLimitGuard, RateLimitGuard } from './limits/rate-limit.guard.js';
import { RequestBuilder } from './limits/request-builder.js';
import { RequestFaults } from './limits/request-faults.js';
import { RoutePolicies } from './limits/route-policies.js';
import { RouteTable } from './limits/route-table.js';
import { Waiting } from './limits/waiting.js';
import { checkNest, checkNode } from './versions.js';
import { checkOptions } from './rate-limit.check.js';
import { OverloadLog } from './overload/overload.log.js';
import { Overload } from './overload/overload.js';
import { LimitsLog } from './limits/limits.log.js';
import {
  type RateLimitModuleInput,
  type RateLimitModuleOptions,
  type RateLimitOverrides,
} from './rate-limit.options.js';
import { DEPS_ABOVE, type DepsAbove } from './observability/monitor.providers.js';
import { HandlerExplorer } from './requests/handlers.js';
import { OPTIONAL_ADAPTER, OPTIONS, provide } from './requests/module-tokens.js';
import { type TierRequest } from './requests/tier.js';
import { Transports } from './requests/transport.js';
import { GraphqlTransport } from './transports/graphql/graphql.transport.js';
import { GrpcOptions } from './transports/grpc/grpc-status.js';
import { GrpcTransport } from './transports/grpc/grpc.transport.js';
import { EarlyLimits } from './transports/http/early-limits.js';
import { LineServer, type ServerAdapter } from './transports/http/line-server.js';
import { HttpTransport } from './transports/http/http.transport.js';
import { PROBLEM_BASE } from './transports/http/problem.js';
import { ProxyWarnings } from './transports/http/proxy-warnings.js';
import { NestTransports } from './transports/nest-transports.js';
import { DroppedEvents } from './transports/rpc/dropped-events.js';
import { KafkaOptions, KafkaWaiting } from './transports/rpc/kafka-waiting.js';
import { EventPatterns } from './transports/rpc/event-patterns.js';
import { RmqReceipts } from './transports/rpc/rmq-receipts.js';
import { MessageTransport } from './transports/rpc/message.transport.js';
import { HeaderOptions, RateLimitHeaders } from './transports/shared/rate-limit-headers.js';
import { trustProxyOf } from './transports/shared/requests.js';
import { Violations, WsTransport } from './transports/ws/ws.transport.js';

/** The options of forRoot, or those that the factory of forRootAsync has made. */
export const RATE_LIMIT_INPUT = Symbol('RATE_LIMIT_INPUT');
/** Options that stand over those of the application, in its tests. */
export const RATE_LIMIT_OVERRIDES = Symbol('RATE_LIMIT_OVERRIDES');

/** Provided by the module that stands in for forRoot in tests. */
export const RATE_LIMIT_STAND_IN = Symbol('RATE_LIMIT_STAND_IN');

/** Closes the limiter when no request is on its way any more. */
class LimiterShutdown implements OnApplicationShutdown {
  constructor(private readonly limiter: RateLimiter) {}

  onApplicationShutdown(): Promise<void> {
    return this.limiter.close();
  }
}

/** Puts the line in front of the application's server, before it listens. */
class LineMounting implements OnApplicationBootstrap {
  constructor(
    private readonly overload: Overload,
    private readonly log: OverloadLog,
    private readonly server: LineServer,
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly hasGuards: () => boolean,
  ) {}

  onApplicationBootstrap(): void {
    // A microservice that stands alone has null there, whatever the types say.
    const adapter = (this.adapterHost?.httpAdapter ?? undefined) as ServerAdapter | undefined;
    if (adapter !== undefined) return this.server.standAt(adapter);
    this.overload.whenChanged(() => {
      if (!this.overload.isOn || this.hasGuards()) return;
      this.log.once(
        'place',
        'overload is enabled, but there is neither a server of HTTP nor a @RateLimit to stand at',
      );
    });
  }
}

/** The parts of the module, each a plain class that is put together here and nowhere else. */
export const providers: Provider[] = [
  { provide: RATE_LIMIT_OVERRIDES, useValue: {} },
  provide(
    OPTIONS,
    [RATE_LIMIT_INPUT, RATE_LIMIT_OVERRIDES, ModulesContainer],
    (
      input: RateLimitModuleInput,
      { policies: _, ...overrides }: RateLimitOverrides,
      modules: ModulesContainer,
    ): RateLimitModuleOptions => {
      checkNode();
      checkNest(modules);
      rejectTwins(modules);
      const options = checkOptions(input, overrides);
      // One name for all parts of the process, or the fleet would see several.
      options.nodeId ??= newNodeId();
      return options;
    },
  ),
  provide(RateLimiter, [OPTIONS], (options: RateLimitModuleOptions) => {
    const { store, nodeId, clock, enabled } = options;
    const parts = withoutUndefined({ quota: quotaOf(options), nodeId, clock });
    if (!enabled) return new NoopRateLimiter(parts);
    return createRateLimiter({ ...parts, ...(store !== undefined && { store }) });
  }),
  provide(
    LimitsLog,
    [OPTIONS, RateLimiter],
    (options: RateLimitModuleOptions, limiter: RateLimiter) => {
      const log = new LimitsLog(options);
      log.listenTo(limiter);
      return log;
    },
  ),
  provide(
    ClusterQuota,
    [RateLimiter, OPTIONS],
    (limiter: RateLimiter, { quota }: RateLimitModuleOptions) =>
      quota === undefined ? undefined : limiter.quota,
  ),
  provide(
    RequestFaults,
    [OPTIONS],
    ({ clock }: RateLimitModuleOptions) => new RequestFaults(clock ?? new SystemClock()),
  ),
  provide(AwaitedValues, [RequestFaults], (faults: RequestFaults) => {
    return new AwaitedValues((policy, cause) => {
      if (policy === undefined) {
        faults.failed(policy, 'user', cause, 'Such callers count as anonymous.');
      } else faults.failed(policy, 'tier', cause, 'Such requests have the default tier.');
    });
  }),
  provide(
    RoutePolicies,
    [RateLimiter, OPTIONS, AwaitedValues, RATE_LIMIT_OVERRIDES],
    (
      limiter: RateLimiter,
      options: RateLimitModuleOptions,
      awaited: AwaitedValues,
      overrides: RateLimitOverrides,
    ) => {
      const { user: lookUp, ipv6Prefix, policies, rejection } = options;
      const user =
        lookUp && ((context: ExecutionContext) => awaited.read(undefined, lookUp, context));
      const routePolicies = new RoutePolicies(
        limiter,
        { user, ipv6Prefix },
        rejection,
        overrides.policies,
      );
      routePolicies.define(policies);
      return routePolicies;
    },
  ),
  provide(
    HandlerExplorer,
    [ModulesContainer, MetadataScanner],
    (modules: ModulesContainer, scanner: MetadataScanner) => new HandlerExplorer(modules, scanner),
  ),
  provide(
    RouteTable,
    [RoutePolicies, RateLimiter, OPTIONS, HandlerExplorer],
    (
      routePolicies: RoutePolicies,
      limiter: RateLimiter,
      { apply, quota, enabled }: RateLimitModuleOptions,
      explorer: HandlerExplorer,
    ) =>
      new RouteTable(routePolicies, limiter, {
        ...{ apply, enabled },
        hasQuota: quota !== undefined,
        maxCost: quota?.maxCost ?? 1,
        handlers: () => explorer.handlers(),
        pathsOf: (type, handler) => explorer.pathsOf(type, handler),
      }),
  ),
  provide(
    RequestBuilder,
    [RoutePolicies, OPTIONS, RequestFaults, AwaitedValues, Overload],
    (
      routePolicies: RoutePolicies,
      { app, tier }: RateLimitModuleOptions,
      faults: RequestFaults,
      awaited: AwaitedValues,
      { tiers }: Overload,
    ) => {
      const tierOfAll = tier && ((request: TierRequest) => tiers.nameForPolicies(request));
      return new RequestBuilder(routePolicies, app, faults, awaited, tierOfAll);
    },
  ),
  provide(
    Waiting,
    [RateLimiter, OPTIONS],
    (limiter: RateLimiter, { clock }: RateLimitModuleOptions) => {
      return new Waiting(limiter, clock ?? new SystemClock());
    },
  ),
  provide(
    DroppedEvents,
    [OPTIONS],
    ({ clock }: RateLimitModuleOptions) => new DroppedEvents(clock ?? new SystemClock()),
  ),
  provide(MessageTransport, [OPTIONS, DroppedEvents, ModulesContainer], messageTransport),
  provide(
    RateLimitHeaders,
    [OPTIONS, RouteTable],
    (options: RateLimitModuleOptions, routes: RouteTable) => {
      const headers = new RateLimitHeaders(Object.assign(new HeaderOptions(), options.headers));
      routes.onNewFigures(() => headers.forgetFigures());
      return headers;
    },
  ),
  provide(
    Transports,
    [OPTIONS, RateLimitHeaders, MessageTransport, ModuleRef, OPTIONAL_ADAPTER],
    transportsOf,
  ),
  RateLimitGuard,
  AppRateLimitGuard,
  RateLimitFilter,
  provide(
    RateLimitExplorer,
    [HandlerExplorer, RouteTable, OPTIONS, OPTIONAL_ADAPTER, AppRateLimitGuard, ModulesContainer],
    (
      found: HandlerExplorer,
      routes: RouteTable,
      { apply, tier }: RateLimitModuleOptions,
      adapter: HttpAdapterHost | undefined,
      guard: AppRateLimitGuard,
      modules: ModulesContainer,
    ) => {
      const reach = apply && new GuardReach(guard, modules.getRpcTargetRegistry());
      return new RateLimitExplorer(found, routes, apply, adapter, reach, tier !== undefined);
    },
  ),
  provide(
    EarlyLimits,
    [RateLimitGuard, Transports, ModulesContainer],
    (guard: RateLimitGuard, transports: Transports, { applicationId }: ModulesContainer) =>
      new EarlyLimits(guard, transports, applicationId),
  ),
  provide(
    LineServer,
    [Overload, OverloadLog, OPTIONS, DegradeRoutes],
    (
      overload: Overload,
      log: OverloadLog,
      { problemBase = PROBLEM_BASE, clock = new SystemClock() }: RateLimitModuleOptions,
      routes: DegradeRoutes,
    ) => new LineServer(overload, log, problemBase, routes, clock),
  ),
  provide(
    LineMounting,
    [Overload, OverloadLog, LineServer, OPTIONAL_ADAPTER, HandlerExplorer, RouteTable],
    (
      overload: Overload,
      log: OverloadLog,
      server: LineServer,
      adapterHost: HttpAdapterHost | undefined,
      explorer: HandlerExplorer,
      routes: RouteTable,
    ) =>
      new LineMounting(overload, log, server, adapterHost, () =>
        [...explorer.handlers()].some(({ type, handler }) => !routes.planOf(type, handler).isEmpty),
      ),
  ),
  provide(DEPS_ABOVE, [RateLimitConfig, DroppedEvents], depsAbove),
  provide(LimiterShutdown, [RateLimiter], (limiter: RateLimiter) => new LimiterShutdown(limiter)),
  // Nest leaves out what is not there: without `apply` no request meets a global guard.
  provide(
    APP_GUARD,
    [OPTIONS, AppRateLimitGuard],
    ({ apply }: RateLimitModuleOptions, guard: AppRateLimitGuard) =>
      apply === undefined ? undefined : guard,
  ),
  provide(
    APP_FILTER,
    [OPTIONS, RateLimitFilter, HandlerExplorer],
    ({ apply }: RateLimitModuleOptions, filter: RateLimitFilter, explorer: HandlerExplorer) => {
      if (apply === undefined) return undefined;
      explorer.bindToGateways(filter);
      return filter;
    },
  ),
];

/** Sources of rooms above the monitor's, which it may not import. */
function depsAbove(config: RateLimitConfig, dropped: DroppedEvents): DepsAbove {
  const refused: Record<string, number> = { invalid: 0, unreadable: 0, lost: 0, staged: 0 };
  config.refused$.subscribe(({ kind }) => (refused[kind] = (refused[kind] ?? 0) + 1));
  return {
    config: () => ({ revision: config.current().revision, refused }),
    droppedEvents: () => dropped.total,
  };
}

/** Each would have limits and connections of its own, and routes would find those of either. */
function rejectTwins(modules: ModulesContainer): void {
  const roots = [...modules.values()].filter(({ providers }) => providers.has(RATE_LIMIT_INPUT));
  if (roots.length < 2) return;
  if (roots.some(({ providers }) => providers.has(RATE_LIMIT_STAND_IN))) {
    throw new InvalidArgumentError(
      'RateLimitTestingModule',
      roots.length,
      'to be imported in the place of RateLimitModule.forRoot',
      'RateLimitTestingModule stands beside RateLimitModule.forRoot in this application, and takes its place: ' +
        'import one of them only, or switch the limits of the whole application off with ' +
        'overrideRateLimits(builder, { enabled: false })',
    );
  }
  const expectation = 'to be called once, in the root module';
  throw new InvalidArgumentError(
    'RateLimitModule.forRoot',
    roots.length,
    expectation,
    `RateLimitModule.forRoot was called ${roots.length} times in this application, and each would have limits ` +
      'of its own: call it once, in the root module, and RateLimitModule.forFeature({ … }) for the policies of others',
  );
}

function messageTransport(
  options: RateLimitModuleOptions,
  dropped: DroppedEvents,
  modules: ModulesContainer,
): MessageTransport {
  const { maxWait } = Object.assign(new KafkaOptions(), withoutUndefined(options.kafka));
  const maxWaitMs = maxWait === 0 ? 0 : durationMs(maxWait, 'kafka.maxWait');
  const servers = modules.getRpcTargetRegistry();
  const [receipts, events] = [new RmqReceipts(servers), new EventPatterns(servers)];
  const waiting = new KafkaWaiting(maxWaitMs, options.clock ?? new SystemClock());
  return new MessageTransport(dropped, receipts, events, waiting);
}

function transportsOf(
  options: RateLimitModuleOptions,
  headers: RateLimitHeaders,
  rpc: MessageTransport,
  modules: ModuleRef,
  adapterHost: HttpAdapterHost | undefined,
): Transports {
  const logger = new Logger('RateLimitModule');
  const proxies = new ProxyWarnings((text) => logger.warn(text));
  const base = options.problemBase ?? PROBLEM_BASE;
  // Applications set it between the making of their parts and the first request.
  const { container } = modules as unknown as {
    container?: Pick<NestContainer, 'applicationConfig'>;
  };
  const versioning = () => container?.applicationConfig?.getVersioning();
  const http = new HttpTransport(headers, adapterHost, base, proxies, versioning);
  const trustProxy = () => trustProxyOf(adapterHost);
  const ws = new WsTransport(new Violations(options.websocket.closeAfter!), trustProxy);
  const graphql = new GraphqlTransport(headers, trustProxy);
  const grpc = new GrpcTransport(Object.assign(new GrpcOptions(), options.grpc), headers);
  return new NestTransports({ http, grpc, rpc, ws, graphql });
}

/** A process that charges one app need not have a share of the others kept for it. */
function quotaOf({ quota, app }: RateLimitModuleOptions): RateLimitModuleOptions['quota'] {
  if (quota === undefined || typeof app !== 'string') return quota;
  return { ...quota, local: { apps: [app], ...withoutUndefined(quota.local ?? {}) } };
}
