import {
  Module,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import type * as PromClient from 'prom-client';
import type { Metric, Registry } from 'prom-client';
import { ModuleMissingError } from '../../common/errors.js';
import { LogLinear } from '../../common/histogram.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { provide } from '../../requests/module-tokens.js';
import { optionalPackage } from '../../stores/optional-package.js';
import { FAMILIES, type Family, type FamilyInfo, type Sample } from '../families.js';
import { RateLimitMonitor } from '../monitor.js';
import { bucketsOf, shownName } from './text.js';

/** Options of `RateLimitPrometheusModule.forRoot`. */
export interface PrometheusOptions {
  /** Default: prom-client's own `register`. */
  readonly registry?: Registry;
}

const MICROS_PER_SECOND = 1_000_000;

interface PromValue {
  readonly labels: Readonly<Record<string, string>>;
  value: number;
  readonly metricName?: string;
}

/**
 * The metrics of the monitors that share a registry. prom-client takes any object with a name and a `get`, so
 * counts are read when somebody asks, and histograms are as exact as ours: its own `inc` costs as much as
 * several decisions, measured.
 */
class RegisteredMetrics {
  private readonly monitors = new Set<RateLimitMonitor>();
  private collected: ReadonlyMap<string, Family[]> | undefined;

  constructor(private readonly registry: Registry) {}

  add(monitor: RateLimitMonitor): void {
    if (this.monitors.size === 0) {
      for (const family of FAMILIES) this.registry.registerMetric(this.metricOf(family));
    }
    this.monitors.add(monitor);
  }

  remove(monitor: RateLimitMonitor): void {
    if (!this.monitors.delete(monitor) || this.monitors.size > 0) return;
    for (const { name } of FAMILIES) this.registry.removeSingleMetric(name);
  }

  private metricOf(info: FamilyInfo): Metric {
    const { name, help, kind: type } = info;
    const metric = {
      // A registry of OpenMetrics takes `_total` off, and puts it on again where it belongs.
      name,
      help,
      type,
      aggregator: 'sum',
      get: () => ({
        name: metric.name,
        help,
        type,
        aggregator: 'sum',
        values: this.valuesOf(info),
      }),
      reset: () => {},
    };
    return metric as unknown as Metric;
  }

  private valuesOf({ name }: FamilyInfo): PromValue[] {
    const values = new Map<string, PromValue>();
    for (const family of this.collect().get(name) ?? []) {
      for (const sample of family.samples) {
        for (const value of promValues(family, sample)) {
          const id = `${value.metricName} ${JSON.stringify(value.labels)}`;
          const known = values.get(id);
          if (known === undefined) values.set(id, value);
          else known.value += value.value;
        }
      }
    }
    return [...values.values()];
  }

  /** Once for all metrics of a scrape, which are asked for in one go. */
  private collect(): ReadonlyMap<string, Family[]> {
    if (this.collected !== undefined) return this.collected;
    const collected = new Map<string, Family[]>();
    for (const monitor of this.monitors) {
      for (const family of monitor.families()) {
        collected.set(family.name, [...(collected.get(family.name) ?? []), family]);
      }
    }
    queueMicrotask(() => (this.collected = undefined));
    return (this.collected = collected);
  }
}

function promValues({ name, labels: names }: Family, sample: Sample): PromValue[] {
  const labels = Object.fromEntries(names.map((one, i) => [one, shownName(sample.labels[i]!)]));
  const { value: times } = sample;
  if (!(times instanceof LogLinear)) return [{ labels, value: times }];
  const buckets = bucketsOf(times).map(({ le, count }) => {
    return { labels: { ...labels, le }, value: count, metricName: `${name}_bucket` };
  });
  const sum = times.sumMicros / MICROS_PER_SECOND;
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: times.count, metricName: `${name}_count` },
  ];
}

const byRegistry = new WeakMap<Registry, RegisteredMetrics>();

/** Has the metrics of the application in a registry of prom-client for as long as it runs. */
class PrometheusMetrics implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly monitor: RateLimitMonitor | undefined,
    private readonly registry: Registry,
  ) {}

  onModuleInit(): void {
    if (this.monitor === undefined) return;
    let metrics = byRegistry.get(this.registry);
    if (metrics === undefined) {
      byRegistry.set(this.registry, (metrics = new RegisteredMetrics(this.registry)));
    }
    metrics.add(this.monitor);
  }

  onApplicationShutdown(): void {
    if (this.monitor !== undefined) byRegistry.get(this.registry)?.remove(this.monitor);
  }
}

/** Puts the metrics of `RateLimitModule` into a registry of prom-client. */
@Module({})
export class RateLimitPrometheusModule {
  static forRoot({ registry }: PrometheusOptions = {}): DynamicModule {
    const metrics = provide(
      PrometheusMetrics,
      [
        { token: RateLimiter, optional: true },
        { token: RateLimitMonitor, optional: true },
      ],
      (limiter: RateLimiter | undefined, monitor: RateLimitMonitor | undefined) => {
        if (limiter === undefined) throw new ModuleMissingError('RateLimitPrometheusModule');
        return new PrometheusMetrics(
          monitor,
          registry ??
            optionalPackage<typeof PromClient>('prom-client', 'RateLimitPrometheusModule').register,
        );
      },
    );
    return { module: RateLimitPrometheusModule, providers: [metrics] };
  }
}
