import {
  Inject,
  Module,
  Optional,
  type DynamicModule,
  type MiddlewareConsumer,
  type NestModule,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { announceCopy } from './copies.js';
import { configProviders } from './config/config.providers.js';
import { degradationProviders } from './degradation/degradation.providers.js';
import { InvalidArgumentError, ModuleMissingError } from './common/errors.js';
import { RateLimitConfig } from './config/rate-limit-config.js';
import { RoutePolicies } from './limits/route-policies.js';
import { ProtectionFilter, TurnedAway } from './protection/protection.filter.js';
import { RequestBuilder } from './limits/request-builder.js';
import { RateLimitFilter } from './limits/rate-limit.filter.js';
import { RateLimitGuard } from './limits/rate-limit.guard.js';
import { RequestFaults } from './limits/request-faults.js';
import { Admission } from './requests/admission.js';
import { Transports } from './requests/transport.js';
import { type RoutePolicy } from './limits/route-policy.js';
import { RouteTable } from './limits/route-table.js';
import { Waiting } from './limits/waiting.js';
import { Degradation } from './degradation/degradation.js';
import { DegradeRoutes } from './degradation/degrade-routes.js';
import { DegradeInterceptor } from './degradation/degrade.interceptor.js';
import { type ByPolicyName } from './limiter/policy-names.js';
import { ClusterQuota, RateLimiter } from './limiter/rate-limiter.js';
import { Protection } from './protection/protection.js';
import { Overload } from './overload/overload.js';
import { overloadProviders } from './overload/overload.providers.js';
import { protectionProviders } from './protection/protection.providers.js';
import {
  type RateLimitModuleAsyncOptions,
  type RateLimitModuleInput,
  type RateLimitOptionsFactory,
} from './rate-limit.options.js';
import { monitorProviders } from './observability/monitor.providers.js';
import { RateLimitMonitor } from './observability/monitor.js';
import { RateLimitExplorer } from './limits/rate-limit.explorer.js';
import { providers, RATE_LIMIT_INPUT } from './rate-limit.providers.js';
import { DroppedEvents } from './transports/rpc/dropped-events.js';
import { EarlyLimits } from './transports/http/early-limits.js';

/** The parts of guards, filters and interceptors that are bound in other modules. */
const SHARED = [
  ...[RateLimiter, ClusterQuota, RateLimitConfig, Protection, RateLimitGuard, RateLimitFilter],
  ...[RoutePolicies, RouteTable, RequestBuilder, Transports, Waiting, DroppedEvents, RequestFaults],
  ...[ProtectionFilter, TurnedAway],
  ...[Degradation, DegradeInterceptor, DegradeRoutes, Overload, Admission, RateLimitMonitor],
];

announceCopy();

/** Rate limits for a Nest application. Import it once, at the root. */
@Module({})
export class RateLimitModule implements NestModule, OnModuleInit {
  /** @internal */
  constructor(
    @Optional() @Inject(RateLimitExplorer) private readonly explorer: RateLimitExplorer | undefined,
    @Optional() @Inject(EarlyLimits) private readonly early: EarlyLimits | undefined,
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
  static forFeature(policies: Readonly<ByPolicyName<RoutePolicy>>): DynamicModule {
    rejectModuleOptions(policies);
    const defined = {
      provide: Symbol('RATE_LIMIT_FEATURE'),
      inject: [{ token: RoutePolicies, optional: true }],
      useFactory: (routePolicies: RoutePolicies | undefined) => routePolicies?.define(policies),
    };
    return { module: RateLimitFeatureModule, providers: [defined] };
  }

  configure(consumer: MiddlewareConsumer): void {
    const { early, explorer } = this.parts();
    early.mount(consumer, explorer.httpPlans());
  }

  onModuleInit(): void {
    this.parts();
  }

  private parts() {
    const { early, explorer } = this;
    if (early !== undefined && explorer !== undefined) return { early, explorer };
    throw new InvalidArgumentError(
      'RateLimitModule',
      undefined,
      'forRoot',
      'RateLimitModule was imported as a class, which says nothing of its limits: ' +
        'import RateLimitModule.forRoot({ … }) or RateLimitModule.forRootAsync({ … })',
    );
  }
}

/** A module of its own, so that a feature does not ask for the root's options again. */
@Module({})
class RateLimitFeatureModule implements OnModuleInit {
  constructor(
    @Optional() @Inject(RoutePolicies) private readonly routePolicies: RoutePolicies | undefined,
  ) {}

  onModuleInit(): void {
    if (this.routePolicies === undefined)
      throw new ModuleMissingError('RateLimitModule.forFeature');
  }
}

/** `{ policies: { … } }`, as forRoot takes it, where the policies themselves are wanted. */
function rejectModuleOptions(given: object): void {
  const { policies } = given as { policies?: object };
  if (typeof policies !== 'object' || policies === null) return;
  const [name] = Object.keys(policies);
  const isPolicy = ['rate', 'tiers', 'algorithm'].some((option) => Object.hasOwn(policies, option));
  if (isPolicy || name === undefined) return;
  const expectation = `the policies themselves, by name: forFeature({ ${name}: … })`;
  throw new InvalidArgumentError('RateLimitModule.forFeature', given, expectation);
}

function moduleWith(input: Provider[]): DynamicModule {
  return {
    module: RateLimitModule,
    global: true,
    imports: [DiscoveryModule],
    providers: [
      ...[...input, ...providers, ...protectionProviders],
      ...[...degradationProviders, ...overloadProviders, ...configProviders, ...monitorProviders],
    ],
    exports: SHARED,
  };
}

function asyncInput(options: RateLimitModuleAsyncOptions): Provider[] {
  const { useFactory, inject = [], useClass, useExisting } = options;
  if (useFactory !== undefined) {
    const make = useFactory as (...args: unknown[]) => MadeOptions;
    const made = async (...args: unknown[]) => mustBeThere(await make(...args), 'useFactory');
    return [{ provide: RATE_LIMIT_INPUT, inject, useFactory: made }];
  }
  const factory = useExisting ?? useClass;
  if (factory === undefined) {
    throw new InvalidArgumentError('forRootAsync', options, 'useFactory, useClass or useExisting');
  }
  const make = async (maker: RateLimitOptionsFactory) =>
    mustBeThere(await maker.createRateLimitOptions(), 'createRateLimitOptions()');
  const made = { provide: RATE_LIMIT_INPUT, inject: [factory], useFactory: make };
  return useClass === undefined ? [made] : [made, useClass];
}

type MadeOptions = RateLimitModuleInput | Promise<RateLimitModuleInput>;

/** A factory that forgets its `return` would make a module without limits. */
function mustBeThere(made: RateLimitModuleInput, by: string): RateLimitModuleInput {
  if ((made ?? undefined) !== undefined) return made;
  const expectation = 'the options of the module';
  throw new InvalidArgumentError(
    'forRootAsync',
    made,
    expectation,
    `forRootAsync: ${by} returned nothing; expected ${expectation}, as forRoot takes them`,
  );
}
