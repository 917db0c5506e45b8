import {
  Logger,
  type FactoryProvider,
  type OnApplicationShutdown,
  type Provider,
} from '@nestjs/common';
import {
  APP_FILTER,
  APP_GUARD,
  DiscoveryService,
  HttpAdapterHost,
  MetadataScanner,
  ModulesContainer,
} from '@nestjs/core';
import { SystemClock } from './common/clock.js';
import { durationMs } from './common/duration.js';
import { InvalidArgumentError } from './common/errors.js';
import { plainObject, rejectUnknown, withoutUndefined } from './common/validate.js';
import {
  PolicyCatalog,
  Questions,
  RateLimitFilter,
  RateLimitGuard,
  RouteTable,
  Transports,
  Waiting,
  type KeyWarnings,
} from './guards/index.js';
import { ClusterQuota } from './limiter/cluster-quota.js';
import { RateLimiter } from './limiter/rate-limiter.js';
import { createRateLimiter } from './limiter/weir-rate-limiter.js';
import { RateLimitExplorer } from './rate-limit.explorer.js';
import { RateLimitModuleOptions, type RateLimitModuleInput } from './rate-limit.options.js';
import { GrpcOptions } from './transports/grpc/grpc-options.js';
import { GrpcTransport } from './transports/grpc/grpc.transport.js';
import { PROBLEM_BASE } from './transports/http/problem.js';
import { HeaderOptions, RateLimitHeaders } from './transports/http/rate-limit-headers.js';
import { HttpTransport } from './transports/http/http.transport.js';
import { GraphqlTransport } from './transports/graphql/graphql.transport.js';
import { NestTransports } from './transports/nest-transports.js';
import { DroppedEvents } from './transports/rpc/dropped-events.js';
import { KafkaOptions } from './transports/rpc/kafka-options.js';
import { MessageTransport } from './transports/rpc/message.transport.js';
import { RmqReceipts } from './transports/rpc/rmq-receipts.js';
import { trustProxyOf } from './transports/upgrade-requests.js';
import { Violations, WebsocketOptions } from './transports/ws/violations.js';
import { WsTransport } from './transports/ws/ws.transport.js';

/** What forRoot was given, or the factory of forRootAsync has made. */
export const RATE_LIMIT_INPUT = Symbol('RATE_LIMIT_INPUT');
const OPTIONS = Symbol('RATE_LIMIT_OPTIONS');

const KNOWN_OPTIONS = [
  ...Object.keys(new RateLimitModuleOptions()),
  ...['store', 'quota', 'app', 'apply', 'user', 'problemBase', 'nodeId', 'clock'],
];
const KNOWN_HEADERS = Object.keys(new HeaderOptions());
const KNOWN_GRPC = Object.keys(new GrpcOptions());
const KNOWN_KAFKA = Object.keys(new KafkaOptions());

/** Closes the limiter when no request is on its way any more. */
class LimiterLife implements OnApplicationShutdown {
  constructor(private readonly limiter: RateLimiter) {}

  onApplicationShutdown(): Promise<void> {
    return this.limiter.close();
  }
}

function provide<T>(
  token: FactoryProvider<T>['provide'],
  inject: FactoryProvider['inject'],
  useFactory: (...args: never[]) => T,
): FactoryProvider<T> {
  return { provide: token, inject: inject!, useFactory: useFactory as (...args: unknown[]) => T };
}

const OPTIONAL_ADAPTER = { token: HttpAdapterHost, optional: true };

/** The parts of the module, each a plain class that is put together here and nowhere else. */
export const providers: Provider[] = [
  provide(OPTIONS, [RATE_LIMIT_INPUT], checkOptions),
  provide(RateLimiter, [OPTIONS], (options: RateLimitModuleOptions) => {
    const { store, quota, nodeId, clock } = options;
    return createRateLimiter(withoutUndefined({ store, quota, nodeId, clock }));
  }),
  provide(
    ClusterQuota,
    [RateLimiter, OPTIONS],
    (limiter: RateLimiter, { quota }: RateLimitModuleOptions) =>
      quota === undefined ? undefined : limiter.quota,
  ),
  provide(
    PolicyCatalog,
    [RateLimiter, OPTIONS],
    (limiter: RateLimiter, options: RateLimitModuleOptions) => {
      const { user, ipv6Prefix, policies } = options;
      const catalog = new PolicyCatalog(limiter, { user, ipv6Prefix });
      catalog.define(policies);
      return catalog;
    },
  ),
  provide(
    RouteTable,
    [PolicyCatalog, RateLimiter, OPTIONS],
    (catalog: PolicyCatalog, limiter: RateLimiter, { apply, quota }: RateLimitModuleOptions) =>
      new RouteTable(catalog, limiter, { apply, hasQuota: quota !== undefined }),
  ),
  provide(
    Questions,
    [PolicyCatalog, OPTIONS],
    (catalog: PolicyCatalog, { app }: RateLimitModuleOptions) => {
      return new Questions(catalog, app, keyWarnings());
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
  provide(Transports, [OPTIONS, MessageTransport, OPTIONAL_ADAPTER], transportsOf),
  RateLimitGuard,
  RateLimitFilter,
  provide(
    RateLimitExplorer,
    [DiscoveryService, MetadataScanner, RouteTable, OPTIONS, OPTIONAL_ADAPTER],
    (
      discovery: DiscoveryService,
      scanner: MetadataScanner,
      routes: RouteTable,
      { apply }: RateLimitModuleOptions,
      adapter: HttpAdapterHost | undefined,
    ) => new RateLimitExplorer(discovery, scanner, routes, apply !== undefined, adapter),
  ),
  provide(LimiterLife, [RateLimiter], (limiter: RateLimiter) => new LimiterLife(limiter)),
  // Nest leaves out what is not there: without `apply` no request meets a global guard.
  provide(
    APP_GUARD,
    [OPTIONS, RateLimitGuard],
    ({ apply }: RateLimitModuleOptions, guard: RateLimitGuard) =>
      apply === undefined ? undefined : guard,
  ),
  provide(
    APP_FILTER,
    [OPTIONS, RateLimitFilter],
    ({ apply }: RateLimitModuleOptions, filter: RateLimitFilter) =>
      apply === undefined ? undefined : filter,
  ),
];

function checkOptions(input: RateLimitModuleInput): RateLimitModuleOptions {
  plainObject('options', input, 'an object');
  rejectUnknown('options', input, KNOWN_OPTIONS);
  const options = Object.assign(new RateLimitModuleOptions(), withoutUndefined(input));
  plainObject('policies', options.policies, 'an object of policies by name');
  plainObject('headers', options.headers, 'an object');
  rejectUnknown('headers', options.headers, KNOWN_HEADERS);
  plainObject('grpc', options.grpc, 'an object');
  rejectUnknown('grpc', options.grpc, KNOWN_GRPC);
  plainObject('kafka', options.kafka, 'an object');
  rejectUnknown('kafka', options.kafka, KNOWN_KAFKA);
  plainObject('websocket', options.websocket, 'an object');
  rejectUnknown('websocket', options.websocket, Object.keys(new WebsocketOptions()));
  if ((options.quota === undefined) !== (options.app === undefined)) {
    const [has, lacks] = options.app === undefined ? ['quota', 'app'] : ['app', 'quota'];
    throw new InvalidArgumentError(lacks, undefined, `to be there beside '${has}'`);
  }
  const { apply, ipv6Prefix } = options;
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 32 || ipv6Prefix > 128) {
    throw new InvalidArgumentError('ipv6Prefix', ipv6Prefix, 'a whole number from 32 to 128');
  }
  if (apply !== undefined && apply !== 'quota' && !Array.isArray(apply)) {
    throw new InvalidArgumentError('apply', apply, "a list of policies, or 'quota'");
  }
  return options;
}

function messageTransport(
  options: RateLimitModuleOptions,
  dropped: DroppedEvents,
  modules: ModulesContainer,
): MessageTransport {
  const { maxWait } = Object.assign(new KafkaOptions(), withoutUndefined(options.kafka));
  const maxWaitMs = maxWait === 0 ? 0 : durationMs(maxWait, 'kafka.maxWait');
  return new MessageTransport(dropped, new RmqReceipts(modules.getRpcTargetRegistry()), maxWaitMs);
}

function transportsOf(
  options: RateLimitModuleOptions,
  rpc: MessageTransport,
  adapterHost: HttpAdapterHost | undefined,
): Transports {
  const headers = new RateLimitHeaders(Object.assign(new HeaderOptions(), options.headers));
  const http = new HttpTransport(headers, adapterHost, options.problemBase ?? PROBLEM_BASE);
  const trustProxy = () => trustProxyOf(adapterHost);
  const ws = new WsTransport(new Violations(closeAfterOf(options)), trustProxy);
  const graphql = new GraphqlTransport(headers, trustProxy);
  const grpc = new GrpcTransport(Object.assign(new GrpcOptions(), options.grpc), headers);
  return new NestTransports({ http, grpc, rpc, ws, graphql });
}

function closeAfterOf({ websocket }: RateLimitModuleOptions): number {
  const { closeAfter } = Object.assign(new WebsocketOptions(), withoutUndefined(websocket));
  const isCount = closeAfter === Infinity || (Number.isInteger(closeAfter) && closeAfter > 0);
  if (isCount) return closeAfter;
  throw new InvalidArgumentError('websocket.closeAfter', closeAfter, 'a whole number from 1 on');
}

/** Once for each policy: a flood of odd requests must not be one of lines. */
function keyWarnings(): KeyWarnings {
  const logger = new Logger('RateLimitModule');
  const told = new Set<string>();
  const warnOnce = (policy: string, what: string): void => {
    if (told.has(policy + what)) return;
    told.add(policy + what);
    logger.warn(`Policy '${policy}': ${what}`);
  };
  return {
    missing(policy, cause) {
      const why =
        cause instanceof Error ? `its key failed (${cause.message})` : 'a request has no key';
      warnOnce(policy, `${why}. Such requests share one bucket, '(none)'.`);
    },
    beforeAuthentication(policy) {
      warnOnce(
        policy,
        'a request with credentials has no user: it was limited before authentication, by its ' +
          "address. Guards of a method run from the last decorator to the first, so write @RateLimit above @UseGuards; or name the user with the option 'user'.",
      );
    },
  };
}
