import {
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { SystemClock, type Clock } from '../common/clock.js';
import { type LogLinear } from '../common/histogram.js';
import { newNodeId } from '../common/ids.js';
import { MinuteLog } from '../common/minute-log.js';
import { StoreUnavailableError } from '../common/errors.js';
import { quotedError } from '../common/quoted.js';
import { withoutUndefined } from '../common/validate.js';
import { type DegradationStats } from '../degradation/core/degradation-core.js';
import { DegradationRuntime } from '../degradation/degradation.providers.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { type OverloadStats } from '../overload/events.js';
import { Overload } from '../overload/overload.js';
import { Protection } from '../protection/protection.js';
import { OPTIONS, provide } from '../requests/module-tokens.js';
import { Transports } from '../requests/transport.js';
import { type BoardStore } from '../stores/board-store.js';
import { MemoryBoard } from '../stores/memory/memory-board.js';
import { RedisBoard } from '../stores/redis/redis-board.js';
import { Fleet } from './fleet/fleet.js';
import { type MonitorOptions } from './monitor-options.js';
import { Alerting, type WatchedDocument } from './alerts/alerting.js';
import { logSink } from './alerts/sinks/log.js';
import { Monitor, RateLimitMonitor } from './monitor.js';
import { ResponseTimes } from './response-times.js';
import { Sources, type SourcesDeps } from './sources.js';

/** The module's options, as far as the monitor reads them. */
export interface MonitorModuleOptions {
  /** Checked, with its defaults; false if nothing is watched. */
  readonly monitor: MonitorOptions | false;
  readonly enabled: boolean;
  readonly nodeId?: string;
  readonly clock?: Clock;
  readonly service?: string;
}

/** The parts above this room that have facts of their own. */
export type DepsAbove = Pick<SourcesDeps, 'config' | 'droppedEvents'>;

/** The token of those parts; whoever composes the module provides them. */
export const DEPS_ABOVE = Symbol('RATE_LIMIT_DEPS_ABOVE');

/** Runs the monitor of an application: its ticks, the times of its answers, its listeners. */
export class MonitorLifecycle
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown
{
  private isEnding = false;
  readonly monitor: Monitor;
  readonly alerting: Alerting;
  private readonly service: string;
  private readonly responses: ResponseTimes | undefined;
  private readonly log: MinuteLog<unknown>;
  private readonly fleetLog: MinuteLog<unknown>;
  private readonly sinkLog: MinuteLog<string>;

  constructor(
    private readonly options: MonitorOptions,
    private readonly transports: Transports,
    private readonly limiter: RateLimiter,
    {
      nodeId = newNodeId(),
      clock = new SystemClock(),
      service = 'default',
    }: Partial<MonitorModuleOptions>,
    deps: Omit<SourcesDeps, 'limiter' | 'transports' | 'responses'>,
  ) {
    this.service = service;
    const http = transports.counts().get('http');
    this.responses =
      options.responses && http !== undefined
        ? new ResponseTimes(http, clock, (context) => transports.of(context))
        : undefined;
    const logger = new Logger('RateLimitMonitor');
    const tell = (_: string, error: unknown): void =>
      logger.warn(`The figures of a second could not be read: ${quotedError(error)}`);
    const again = (name: string, _: number, error: unknown): void => tell(name, error);
    this.log = new MinuteLog(clock, { once: tell, again });
    this.sinkLog = new MinuteLog<string>(clock, {
      once: (name, text) => logger.warn(`Alerts to ${name}: ${text}`),
      again: (name, count, text) =>
        logger.warn(`Alerts to ${name}: ${text} (${count} times within a minute)`),
    });
    const board = options.fleet ? boardOf(limiter, clock) : undefined;
    this.alerting = new Alerting({
      ...{ nodeId, service, clock },
      // Of a process by itself there is nothing to agree upon.
      ...(board?.isShared === true && { board }),
      sinks: [logSink(new Logger('RateLimitAlerts')), ...options.sinks],
      fault: (name, text) => this.sinkLog.add(name, text),
    });
    const watched = withoutUndefined({ responses: this.responses });
    const sources = new Sources({ limiter, transports, ...deps, ...watched });
    const failed = (error: unknown): void => this.log.add('tick', error);
    this.monitor = new Monitor(nodeId, options, sources, clock, failed, this.alerting);
    this.monitor.cluster = service;
    this.monitor.isAlarmed = () => this.alerting.isAlarmed;
    const silent = (_: string, error: unknown): void =>
      logger.warn(`The figures of this process could not be shared: ${quotedError(error)}`);
    const silentAgain = (name: string, _: number, error: unknown): void => silent(name, error);
    this.fleetLog = new MinuteLog(clock, { once: silent, again: silentAgain });
    if (board !== undefined) this.monitor.shared = this.openFleet(nodeId, board, clock);
  }

  private openFleet(nodeId: string, board: BoardStore, clock: Clock): Fleet {
    const { monitor, limiter, alerting } = this;
    return new Fleet({
      ...{ nodeId, board, clock, maxSeries: this.options.maxSeries },
      snapshot: () => monitor.snapshot(),
      about: (seen) => monitor.fleetContext(seen),
      leads: async (epochMicros) => await alerting.fleet?.begin(epochMicros),
      follows: () => alerting.fleet?.end(),
      nodes: () => limiter.stats().store?.nodes ?? 1,
      isAlarmed: () => monitor.isAlarmed(),
      useSalt: (salt) => (monitor.salt = salt),
      // The limiter tells that the store is away.
      failed: (error) => {
        if (!(error instanceof StoreUnavailableError)) this.fleetLog.add('fleet', error);
      },
    });
  }

  /** Checks what a document says of alerts; the result puts it, and the rest of it, in force. */
  prepare(document: WatchedDocument): () => void {
    const install = this.alerting.prepare(document);
    return () => {
      install();
      this.monitor.document = document;
      this.monitor.cluster = document.cluster?.id ?? this.service;
    };
  }

  onModuleInit(): void {
    const { onDenied, keys } = this.options;
    if (keys !== 'off') this.limiter.deniedKeys?.watch();
    if (onDenied !== undefined) {
      for (const counts of this.transports.counts().values()) counts.onDenied.push(onDenied);
    }
    this.responses?.start();
    this.monitor.start();
  }

  /** The start does not wait for the line: the store may take a while. */
  onApplicationBootstrap(): void {
    const logger = new Logger('RateLimitModule');
    void this.monitor.startLine().then((line) => {
      if (!this.isEnding) logger.log(line);
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isEnding = true;
    this.responses?.stop();
    this.monitor.stop();
    // Before the limiter closes the connection.
    await this.monitor.shared?.close();
    this.log.close();
    this.fleetLog.close();
    this.sinkLog.close();
  }
}

function boardOf({ redis }: RateLimiter, clock: Clock): BoardStore {
  return redis === undefined ? new MemoryBoard(clock) : new RedisBoard(redis, clock);
}

export const monitorProviders: Provider[] = [
  provide(
    MonitorLifecycle,
    [OPTIONS, RateLimiter, Transports, Protection, DegradationRuntime, Overload, DEPS_ABOVE],
    (
      options: MonitorModuleOptions,
      limiter: RateLimiter,
      transports: Transports,
      protection: Protection,
      degradation: DegradationRuntime,
      line: Overload,
      above: DepsAbove,
    ) => {
      const { monitor, enabled } = options;
      if (monitor === false || !enabled) return undefined;
      const overload = (): OverloadStats | undefined => (line.isOn ? line.stats() : undefined);
      const degraded = (): DegradationStats | undefined => degradation.openedStats;
      const waitTimes = (): LogLinear | undefined => (line.isOn ? line.waitTimes : undefined);
      const deps = { protection, degradation: degraded, overload, waitTimes, ...above };
      return new MonitorLifecycle(monitor, transports, limiter, options, deps);
    },
  ),
  provide(
    RateLimitMonitor,
    [{ token: MonitorLifecycle, optional: true }],
    (lifecycle: MonitorLifecycle | undefined) => lifecycle?.monitor,
  ),
];
