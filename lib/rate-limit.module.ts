import {
  Inject,
  Module,
  type DynamicModule,
  type MiddlewareConsumer,
  type NestModule,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { configProviders } from './config.providers.js';
import { degradationProviders } from './degradation.providers.js';
import { InvalidArgumentError } from './common/errors.js';
import { RateLimitConfig } from './config/index.js';
import {
  PolicyCatalog,
  ProtectionFilter,
  RateLimitFilter,
  RateLimitGuard,
  RequestFaults,
  RouteTable,
  Questions,
  Transports,
  TurnedAway,
  Waiting,
  type RoutePolicy,
} from './guards/index.js';
import {
  Degradation,
  DegradeInterceptor,
  DegradeRoutes,
  DegradeTransports,
} from './interceptors/index.js';
import { ClusterQuota } from './limiter/cluster-quota.js';
import { RateLimiter } from './limiter/rate-limiter.js';
import { Protection } from './protection/index.js';
import { protectionProviders } from './protection.providers.js';
import {
  type RateLimitModuleAsyncOptions,
  type RateLimitModuleInput,
  type RateLimitOptionsFactory,
} from './rate-limit.options.js';
import { RateLimitExplorer } from './rate-limit.explorer.js';
import { providers, RATE_LIMIT_INPUT } from './rate-limit.providers.js';
import { DroppedEvents } from './transports/rpc/dropped-events.js';
import { EarlyLimits } from './transports/http/early-limits.js';

/** What guards in other modules are put together from. */
const SHARED = [
  ...[RateLimiter, ClusterQuota, RateLimitConfig, Protection, RateLimitGuard, RateLimitFilter],
  ...[PolicyCatalog, RouteTable, Questions, Transports, Waiting, DroppedEvents, RequestFaults],
  ...[ProtectionFilter, TurnedAway],
  ...[Degradation, DegradeInterceptor, DegradeRoutes, DegradeTransports],
];

/** Rate limits for a Nest application. Import it once, at the root. */
@Module({})
export class RateLimitModule implements NestModule, OnModuleInit {
  constructor(
    @Inject(RateLimitExplorer) private readonly explorer: RateLimitExplorer,
    @Inject(EarlyLimits) private readonly early: EarlyLimits,
  ) {}

  static forRoot(options: RateLimitModuleInput = {}): DynamicModule {
    return moduleWith([{ provide: RATE_LIMIT_INPUT, useValue: options }]);
  }

  static forRootAsync(options: RateLimitModuleAsyncOptions): DynamicModule {
    return {
      ...moduleWith(asyncInput(options)),
      imports: [DiscoveryModule, ...(options.imports ?? [])],
    };
  }

  /** Policies that a feature brings along; their names are known everywhere. */
  static forFeature(policies: Readonly<Record<string, RoutePolicy>>): DynamicModule {
    const defined = {
      provide: Symbol('RATE_LIMIT_FEATURE'),
      inject: [PolicyCatalog],
      useFactory: (catalog: PolicyCatalog) => catalog.define(policies),
    };
    return { module: RateLimitFeatureModule, providers: [defined] };
  }

  configure(consumer: MiddlewareConsumer): void {
    this.early.mount(consumer, this.explorer.httpPlans());
  }

  onModuleInit(): void {
    this.explorer.warnOfTwins(RateLimitModule);
  }
}

/** A module of its own, so that a feature does not ask for the root's options again. */
@Module({})
class RateLimitFeatureModule {}

function moduleWith(input: Provider[]): DynamicModule {
  return {
    module: RateLimitModule,
    global: true,
    imports: [DiscoveryModule],
    providers: [
      ...[...input, ...providers, ...protectionProviders],
      ...[...degradationProviders, ...configProviders],
    ],
    exports: SHARED,
  };
}

function asyncInput(options: RateLimitModuleAsyncOptions): Provider[] {
  const { useFactory, inject = [], useClass, useExisting } = options;
  if (useFactory !== undefined)
    return [
      { provide: RATE_LIMIT_INPUT, inject, useFactory: useFactory as () => RateLimitModuleInput },
    ];
  const factory = useExisting ?? useClass;
  if (factory === undefined) {
    throw new InvalidArgumentError('forRootAsync', options, 'useFactory, useClass or useExisting');
  }
  const make = (maker: RateLimitOptionsFactory) => maker.createRateLimitOptions();
  const made = { provide: RATE_LIMIT_INPUT, inject: [factory], useFactory: make };
  return useClass === undefined ? [made] : [made, useClass];
}
