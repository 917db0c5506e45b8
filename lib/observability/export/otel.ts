import {
  Module,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import type * as Otel from '@opentelemetry/api';
import type {
  Attributes,
  BatchObservableCallback,
  Meter,
  MeterProvider,
  Observable,
} from '@opentelemetry/api';
import { ModuleMissingError } from '../../common/errors.js';
import { LogLinear } from '../../common/histogram.js';
import { type Decision } from '../../limiter/decision.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { provide } from '../../requests/module-tokens.js';
import { Transports } from '../../requests/transport.js';
import { optionalPackage } from '../../stores/optional-package.js';
import { wireOf } from '../../stores/redis/wire.js';
import { libraryVersion } from '../../stores/package-file.js';
import { BUCKET_MICROS, FAMILIES, type Family, type FamilyInfo } from '../families.js';
import { RateLimitMonitor } from '../monitor.js';
import { shownName } from './text.js';

/** Options of `RateLimitOtelModule.forRoot`. */
export interface OtelOptions {
  /** Default: the global one. */
  readonly meterProvider?: MeterProvider;
  /** Adds an event `weir.denied` to the active span of each denied request. Default: false. */
  readonly spans?: boolean;
}

const MICROS_PER_SECOND = 1_000_000;
const STORE_CALLS = 'weir_store_call_seconds';
const LINE_WAITS = 'weir_overload_wait_seconds';
/** The series whose quantiles stand for a histogram: OpenTelemetry has none that is read when asked for. */
const QUANTILES = [
  { part: 'p50', of: 'p50Ms' },
  { part: 'p99', of: 'p99Ms' },
] as const;

/** Observes the metrics of the application in a meter of OpenTelemetry for as long as it runs. */
class OtelMetrics implements OnModuleInit, OnApplicationShutdown {
  private readonly meter: Meter;
  private readonly instruments = new Map<string, Observable>();
  private readonly stops: (() => void)[] = [];
  private readonly observe: BatchObservableCallback = (result) => {
    const into = (name: string, value: number, attributes: Attributes): void => {
      const instrument = this.instruments.get(name);
      if (instrument !== undefined) result.observe(instrument, value, attributes);
    };
    for (const family of this.monitor.families()) {
      observeFamily(family, into);
      if (family.name === LINE_WAITS) observeWaits(family, into);
    }
    for (const { name, p50Ms, p99Ms } of this.monitor.state().series) {
      const { metric, attributes } = timedSeries(name);
      if (metric === undefined || p50Ms === undefined) continue;
      into(`${metric}.p50`, p50Ms / 1000, attributes);
      into(`${metric}.p99`, p99Ms! / 1000, attributes);
    }
  };

  constructor(
    private readonly monitor: RateLimitMonitor,
    private readonly limiter: RateLimiter,
    private readonly transports: Pick<Transports, 'counts'>,
    private readonly api: typeof Otel,
    { meterProvider = api.metrics.getMeterProvider(), spans = false }: OtelOptions,
  ) {
    this.meter = meterProvider.getMeter('nestjs-weir', libraryVersion());
    if (spans) this.watchSpans();
  }

  onModuleInit(): void {
    for (const family of FAMILIES) this.addInstruments(family);
    const all = [...this.instruments.values()];
    this.meter.addBatchObservableCallback(this.observe, all);
    this.stops.push(() => this.meter.removeBatchObservableCallback(this.observe, all));
  }

  onApplicationShutdown(): void {
    for (const stop of this.stops) stop();
  }

  private addInstruments({ name, otel, unit, kind, help: description }: FamilyInfo): void {
    const options = { description, unit };
    if (name === STORE_CALLS) return this.recordStoreCalls(otel, options);
    if (kind === 'histogram') {
      for (const { part } of QUANTILES) {
        const quantile = `${otel}.${part}`;
        this.instruments.set(quantile, this.meter.createObservableGauge(quantile, options));
      }
      return;
    }
    const instrument =
      kind === 'counter'
        ? this.meter.createObservableCounter(otel, options)
        : this.meter.createObservableGauge(otel, options);
    this.instruments.set(otel, instrument);
  }

  /** One for all decisions of an event-loop turn: few enough for a real histogram. */
  private recordStoreCalls(otel: string, options: object): void {
    const { redis } = this.limiter;
    if (redis === undefined) return;
    const explicitBucketBoundaries = BUCKET_MICROS.map((micros) => micros / MICROS_PER_SECOND);
    const advice = { explicitBucketBoundaries };
    const histogram = this.meter.createHistogram(otel, { ...options, advice });
    const { listeners } = wireOf(redis.client).calls;
    const listener = (op: string, micros: number): void =>
      histogram.record(micros / MICROS_PER_SECOND, { 'weir.op': op });
    listeners.add(listener);
    this.stops.push(() => listeners.delete(listener));
  }

  private watchSpans(): void {
    const { api } = this;
    const listener = ({ policy, tier, source, retryAfterMs }: Decision): void => {
      api.trace.getActiveSpan()?.addEvent('weir.denied', {
        'weir.policy': shownName(policy),
        'weir.tier': tier,
        'weir.source': source,
        'weir.retry_after_ms': retryAfterMs,
      });
    };
    for (const { onDenied } of this.transports.counts().values()) onDenied.push(listener);
  }
}

type Observe = (name: string, value: number, attributes: Attributes) => void;

/** No series has the waits in line: these are quantiles of all since the start. */
function observeWaits({ otel, samples }: Family, into: Observe): void {
  for (const { value } of samples) {
    if (typeof value === 'number' || value.count === 0) continue;
    into(`${otel}.p50`, value.quantile(0.5) / MICROS_PER_SECOND, {});
    into(`${otel}.p99`, value.quantile(0.99) / MICROS_PER_SECOND, {});
  }
}

function observeFamily({ otel, labels, samples }: Family, into: Observe): void {
  for (const { labels: values, value } of samples) {
    if (value instanceof LogLinear) continue;
    const pairs = labels.map((label, index) => [`weir.${label}`, shownName(values[index]!)]);
    into(otel, value, Object.fromEntries(pairs) as Attributes);
  }
}

function timedSeries(name: string): { metric: string | undefined; attributes: Attributes } {
  if (name === 'total') return { metric: 'weir.response.duration', attributes: {} };
  const [, resource] = /^resource:(.*)$/.exec(name) ?? [];
  if (resource === undefined) return { metric: undefined, attributes: {} };
  const attributes = { 'weir.resource': shownName(resource) };
  return { metric: 'weir.resource.call.duration', attributes };
}

/** Gives the metrics of `RateLimitModule` to OpenTelemetry. */
@Module({})
export class RateLimitOtelModule {
  static forRoot(options: OtelOptions = {}): DynamicModule {
    const metrics = provide(
      OtelMetrics,
      [
        { token: RateLimiter, optional: true },
        { token: RateLimitMonitor, optional: true },
        { token: Transports, optional: true },
      ],
      (
        limiter: RateLimiter | undefined,
        monitor: RateLimitMonitor | undefined,
        transports: Transports | undefined,
      ) => {
        if (limiter === undefined) throw new ModuleMissingError('RateLimitOtelModule');
        const api = optionalPackage<typeof Otel>('@opentelemetry/api', 'RateLimitOtelModule');
        return monitor && new OtelMetrics(monitor, limiter, transports!, api, options);
      },
    );
    return { module: RateLimitOtelModule, providers: [metrics] };
  }
}
