import { type Provider } from '@nestjs/common';
import { RateLimitConfig, type ConfigSnapshot } from './rate-limit-config.js';
import { type VersionedConfig } from './versioned-config.js';
import {
  ConfigLifecycle,
  openConfig,
  openOrders,
  type ConfigModuleOptions,
} from './config.lifecycle.js';
import { DegradationRuntime } from '../degradation/degradation.providers.js';
import { RoutePolicies } from '../limits/route-policies.js';
import { RouteTable } from '../limits/route-table.js';
import { Degradation } from '../degradation/degradation.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { LimitsConsumer } from './limits.consumer.js';
import { MonitorLifecycle } from '../observability/monitor.providers.js';
import { Overload } from '../overload/overload.js';
import { Protection } from '../protection/protection.js';
import { OPTIONS, provide } from '../requests/module-tokens.js';

/** The configuration, which changes while the service runs, and its consumers. */
export const configProviders: Provider[] = [
  provide(
    LimitsConsumer,
    [OPTIONS, RateLimiter, RoutePolicies, RouteTable],
    (
      { app }: { readonly app?: unknown },
      limiter: RateLimiter,
      routePolicies: RoutePolicies,
      routes: RouteTable,
    ) => {
      const fixed = typeof app === 'string' ? app : undefined;
      return new LimitsConsumer(limiter, routePolicies, routes, fixed);
    },
  ),
  provide(RateLimitConfig, [OPTIONS, RateLimiter], openConfig),
  provide(
    ConfigLifecycle,
    [
      RateLimitConfig,
      OPTIONS,
      RateLimiter,
      RoutePolicies,
      LimitsConsumer,
      Protection,
      DegradationRuntime,
      Degradation,
      Overload,
      { token: MonitorLifecycle, optional: true },
    ],
    (
      config: VersionedConfig,
      options: ConfigModuleOptions,
      limiter: RateLimiter,
      routePolicies: RoutePolicies,
      limits: LimitsConsumer,
      protection: Protection,
      degradation: DegradationRuntime,
      operations: Degradation,
      overload: Overload,
      monitor: MonitorLifecycle | undefined,
    ) => {
      const resources = {
        prepare: ({ document }: ConfigSnapshot) =>
          protection.prepare(document.protection ?? {}, () =>
            routePolicies.namesWith(document.policies ?? {}),
          ),
      };
      const load = {
        prepare: ({ document }: ConfigSnapshot, previous?: ConfigSnapshot) =>
          previous !== undefined && previous.document.overload === document.overload
            ? () => {}
            : overload.prepare(document.overload),
      };
      const alerts = {
        prepare: ({ document }: ConfigSnapshot) =>
          monitor === undefined ? () => {} : monitor.prepare(document),
      };
      const consumers = [limits, resources, degradation, load, alerts];
      const orders = openOrders(options, config, limiter, operations, degradation);
      return new ConfigLifecycle(config, options, limiter, routePolicies, consumers, orders);
    },
  ),
];
