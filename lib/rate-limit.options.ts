import {
  type ExecutionContext,
  type InjectionToken,
  type ModuleMetadata,
  type OptionalFactoryDependency,
  type Type,
} from '@nestjs/common';
import { ConfigOptions } from './config/config.options.js';
import { type PerRequest } from './limits/key-resolver.js';
import { type Rejection, type RouteFields, type RoutePolicy } from './limits/route-policy.js';
import { type AlertsInput } from './observability/alerts/alerts.schema.js';
import { type OverloadInput } from './overload/settings.js';
import { type TierResolver } from './requests/tier.js';
import { type DegradeModuleOptions } from './degradation/degrade-module-options.js';
import { type RateLimiterOptions, type StoreInput } from './limiter/options.js';
import { type ByPolicyName, type PolicyName } from './limiter/policy-names.js';
import { MonitorOptions } from './observability/monitor-options.js';
import { type ResourcesInput } from './protection/resource-options.js';
import { GrpcOptions } from './transports/grpc/grpc-status.js';
import { HeaderOptions } from './transports/shared/rate-limit-headers.js';
import { KafkaOptions } from './transports/rpc/kafka-waiting.js';
import { WebsocketOptions } from './transports/ws/ws.transport.js';

/** All options of the module. The initial values are the defaults. */
export class RateLimitModuleOptions implements Omit<RateLimiterOptions, 'policies'> {
  /** The rules by name, and how they are applied to requests. */
  policies: ByPolicyName<RoutePolicy> = {};
  /**
   * False switches everything off, and says so at the start: no limit, fallback or protection holds, and the
   * store is not opened. Options and decorators are checked all the same.
   */
  enabled = true;
  /** Where buckets live: `'memory'`, or Redis. */
  store?: StoreInput;
  /** The shares that apps have of a cluster's capacity. */
  quota?: NonNullable<RateLimiterOptions['quota']>;
  /** How limits change while the service runs. */
  config: Partial<ConfigOptions> = new ConfigOptions();
  /**
   * The name of this service, where several share a Redis: each has its own code in the configuration,
   * and its own answers. Needed for level 1 of `@Degrade` on Redis. Default: `app`, if that is a name.
   */
  service?: string;
  /** Which state of the code's limits this is: of two versions that run at once the higher holds. */
  configVersion?: number;
  /** The app whose quota a request is charged to. Needed, and only needed, with `quota`. */
  app?: PerRequest<string>;
  /** Limits every route without a decorator: policies by name, or the app's quota alone. */
  apply?: readonly PolicyName[] | 'quota';
  /**
   * The caller's name for `key: 'user'`; may be async. Default: `request.user`, or its id, sub, userId,
   * username.
   */
  user?: (context: ExecutionContext) => unknown;
  /**
   * The error of a denied request, of all policies and the quota, in place of the usual one; undefined for
   * the usual one. What a policy says by itself goes before.
   */
  rejection?: Rejection;
  /** The protection of the resources that this service uses, by name. */
  protection: ResourcesInput = {};
  /** Which headers tell HTTP callers about their limits. */
  headers: Partial<HeaderOptions> = new HeaderOptions();
  /** How gRPC callers learn of their limits. */
  grpc: Partial<GrpcOptions> = new GrpcOptions();
  /** The fate of Kafka's events that are over their limit. */
  kafka: Partial<KafkaOptions> = new KafkaOptions();
  /** How gateways treat their clients. */
  websocket: Partial<WebsocketOptions> = new WebsocketOptions();
  /** The options of all `@Degrade`, and how resources recover. */
  degradation: Partial<DegradeModuleOptions> = {};
  /** The line in front of the framework, for more requests than this process can serve. */
  overload?: OverloadInput;
  /** Alerts to operators: rules and sinks. */
  alerts?: AlertsInput;
  /**
   * The tier of a request: who goes first in the line, and the figures of policies that have a tier of that
   * name and no `tier` of their own. Has to answer at once; undefined for the lowest.
   */
  tier?: TierResolver;
  /** Figures that are watched while the service runs; false for none. */
  monitor: Partial<MonitorOptions> | false = new MonitorOptions();
  /** How many bits of an IPv6 address name one caller. */
  ipv6Prefix = 64;
  /** The beginning of the types of problem+json answers. */
  problemBase?: string;
  /** The name of this process in the fleet. */
  nodeId?: NonNullable<RateLimiterOptions['nodeId']>;
  /** The source of time; tests bring their own. */
  clock?: NonNullable<RateLimiterOptions['clock']>;
}

/** Options of `RateLimitModule.forRoot`. */
export type RateLimitModuleInput = Partial<RateLimitModuleOptions>;

/** Options that are laid over the application's own while it is tested. */
export interface RateLimitOverrides extends Omit<RateLimitModuleInput, 'policies'> {
  /** Fields of policies by name, of the root and of features; of a decorator's own by `Class.method`. */
  policies?: Readonly<Record<string, RouteFields>>;
  /** Default: a clock that nobody moves, so that no token comes back. */
  clock?: NonNullable<RateLimitModuleInput['clock']>;
  /** Default: `'memory'`, so that each test begins with full buckets and needs no Redis. */
  store?: StoreInput;
}

/** A class that makes the options: what `useClass` and `useExisting` name. */
export interface RateLimitOptionsFactory {
  createRateLimitOptions(): RateLimitModuleInput | Promise<RateLimitModuleInput>;
}

/** The options, made by a function, by a class, or by a provider that is there already: by one of them. */
export type RateLimitModuleAsyncOptions = Pick<ModuleMetadata, 'imports'> &
  (
    | {
        readonly useFactory: (
          ...args: never[]
        ) => RateLimitModuleInput | Promise<RateLimitModuleInput>;
        readonly inject?: (InjectionToken | OptionalFactoryDependency)[];
        readonly useClass?: undefined;
        readonly useExisting?: undefined;
      }
    | {
        readonly useClass: Type<RateLimitOptionsFactory>;
        readonly useFactory?: undefined;
        readonly inject?: undefined;
        readonly useExisting?: undefined;
      }
    | {
        readonly useExisting: InjectionToken<RateLimitOptionsFactory>;
        readonly useFactory?: undefined;
        readonly inject?: undefined;
        readonly useClass?: undefined;
      }
  );
