import { Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { type ConfigConsumer, type OwnLayer } from './rate-limit-config.js';
import { type Report } from '../common/report.js';
import { type ConfigLayer } from './schema/check.js';
import { documentOf } from './schema/limits-of.js';
import { FileSource } from './sources/file-source.js';
import { SourceLayer, type ConfigSource } from './sources/source-layer.js';
import { VersionedConfig } from './versioned-config.js';
import { SystemClock, type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { RateLimitError } from '../common/errors.js';
import { newNodeId } from '../common/ids.js';
import { inOneLine } from '../common/quoted.js';
import { withoutUndefined } from '../common/validate.js';
import { type ConfigOptions } from './config.options.js';
import { type RoutePolicies } from '../limits/route-policies.js';
import { type Degradation } from '../degradation/degradation.js';
import { type DegradeModuleInput } from '../degradation/degrade-module-options.js';
import { type QuotaOptions } from '../limiter/quota-options.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type AlertsInput } from '../observability/alerts/alerts.schema.js';
import { type OverloadInput } from '../overload/settings.js';
import { type ResourcesInput } from '../protection/resource-options.js';
import { MemoryConfig } from '../stores/memory/memory-config.js';
import { RedisConfig } from '../stores/redis/redis-config.js';
import { RedisOrders } from '../stores/redis/redis-orders.js';
import { WarmOrders } from '../degradation/warm-orders.js';

/** The module's options, as far as the configuration reads them. */
export interface ConfigModuleOptions {
  /** Checked, with its defaults. */
  readonly config: ConfigOptions;
  readonly configVersion?: number;
  readonly service?: string;
  readonly nodeId?: string;
  readonly clock?: Clock;
  readonly quota?: QuotaOptions;
  readonly protection: ResourcesInput;
  readonly degradation: DegradeModuleInput;
  readonly overload?: OverloadInput;
  readonly alerts?: AlertsInput;
}

/** Of an application without a name. */
const DEFAULT_SERVICE = 'default';
/** The name of a source other than a file, in messages. */
const SOURCE = 'config.source';
/** No request waits for the configuration. */
const STORE_TIMEOUT_MS = 1000;
/** Of resources that a process names with each poll; an operator can name others, too. */
const MOST_NAMES = 200;

/** The configuration of an application, on the store that its limiter has. */
export function openConfig(options: ConfigModuleOptions, limiter: RateLimiter): VersionedConfig {
  const { nodeId = newNodeId(), clock = new SystemClock(), config } = options;
  const { service = DEFAULT_SERVICE } = options;
  const { redis } = limiter;
  const store =
    redis === undefined
      ? new MemoryConfig(clock)
      : new RedisConfig({ ...redis, timeoutMs: STORE_TIMEOUT_MS }, clock);
  const report = reportTo(new Logger('RateLimitConfig'));
  const pollMs = durationMs(config.poll, 'config.poll');
  return new VersionedConfig({ store, nodeId, clock, report, service, pollMs });
}

function reportTo(logger: Logger): Report {
  return {
    info: (text) => logger.log(inOneLine(text)),
    warn: (text) => logger.warn(inOneLine(text)),
    error: (text) => logger.error(inOneLine(text)),
  };
}

/** Reports the resources of this process to operators, and carries out their orders; on Redis only. */
export function openOrders(
  { service = DEFAULT_SERVICE, clock = new SystemClock() }: ConfigModuleOptions,
  config: VersionedConfig,
  { redis }: RateLimiter,
  degradation: Degradation,
  parts: { readonly resources: readonly string[] },
): WarmOrders | undefined {
  if (redis === undefined) return undefined;
  const names = (): string[] => (parts.resources.length === 0 ? [] : degradation.warmable());
  config.describe(() => ({
    ...{ service, resources: parts.resources.slice(0, MOST_NAMES) },
    warms: names().slice(0, MOST_NAMES),
  }));
  const store = new RedisOrders({ ...redis, timeoutMs: STORE_TIMEOUT_MS }, clock);
  const report = reportTo(new Logger('Degradation'));
  const warm = (resource?: string) => degradation.warm(resource);
  const orders = new WarmOrders({
    ...{ store, service, nodeId: config.nodeId, clock, report, names, warm },
  });
  config.whenOrdered(() => orders.look());
  return orders;
}

/**
 * Starts the configuration when all policies of the code are known, and ends it when no request is
 * on its way any more.
 */
export class ConfigLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('RateLimitConfig');
  private layer: SourceLayer | undefined;

  constructor(
    private readonly config: VersionedConfig,
    private readonly options: ConfigModuleOptions,
    private readonly limiter: RateLimiter,
    private readonly routePolicies: RoutePolicies,
    private readonly consumers: readonly ConfigConsumer[],
    private readonly orders: WarmOrders | undefined,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { config } = this;
    const code = this.code();
    const file = await this.openFile();
    for (const consumer of this.consumers) config.consume(consumer);
    this.limiter.on('revision', ({ revision }) => config.noticed(revision));
    await config.start(withoutUndefined({ code, file }));
  }

  async onApplicationShutdown(): Promise<void> {
    this.layer?.close();
    this.orders?.close();
    await this.config.close();
  }

  private code(): OwnLayer {
    const { quota, configVersion: version } = this.options;
    const limits = documentOf(withoutUndefined({ policies: this.routePolicies.govern(), quota }));
    const document = { ...limits, ...plainParts(this.options) } as ConfigLayer;
    return { document, ...(version !== undefined && { version }) };
  }

  private async openFile(): Promise<OwnLayer | undefined> {
    const source = this.source();
    if (source === undefined) return undefined;
    const name = this.options.config.file ?? SOURCE;
    let isOpen = false;
    this.layer = new SourceLayer(source, {
      name,
      onChange: (layer) => isOpen && this.config.replaceFile(layerOf(layer)),
      onFault: (fault) => this.tellFault(fault),
    });
    const layer = await this.layer.open();
    isOpen = true;
    return layer && layerOf(layer);
  }

  private tellFault(fault: Error): void {
    const isOurs = fault instanceof RateLimitError;
    const what = isOurs ? fault.message : `${SOURCE}: ${withCause(fault)}`;
    const isNew = this.layer?.current === undefined;
    const then = isNew ? 'it is left out until it can be used' : 'the last good one stays';
    this.logger.error(`${inOneLine(what)}; ${then}`);
    this.config.refuseFile(fault);
  }

  private source(): ConfigSource | undefined {
    const { config, clock } = this.options;
    const { file, source, filePoll } = config;
    if (file === undefined) return source;
    return new FileSource(file, withoutUndefined({ pollInterval: filePoll, clock }));
  }
}

/** A failed `fetch` has its reason only in `cause`. */
function withCause({ message, cause }: Error): string {
  if (!(cause instanceof Error)) return message;
  const why = cause.message || (cause as NodeJS.ErrnoException).code;
  return why ? `${message} (${why})` : message;
}

function layerOf({ version, ...document }: ConfigLayer): OwnLayer {
  return { document, ...(typeof version === 'number' && { version }) };
}

function plainParts({
  protection,
  degradation,
  overload = {},
  alerts = {},
}: Pick<ConfigModuleOptions, 'protection' | 'degradation' | 'overload' | 'alerts'>): object {
  const { probes: _functions, credentialHeaders: _ofCode, ...figures } = degradation;
  const { probes: _probes, isExempt: _isExempt, ...load } = overload;
  const parts = { protection, degradation: figures, overload: load, alerts };
  const written = Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0);
  // Which is what JSON leaves out: undefined and functions.
  return JSON.parse(JSON.stringify(Object.fromEntries(written))) as object;
}
