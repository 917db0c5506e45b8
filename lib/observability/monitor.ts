import { createHmac, randomBytes } from 'node:crypto';
import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { later, type Cancel, type Clock } from '../common/clock.js';
import { EventHub } from '../common/event-hub.js';
import { newIncarnation } from '../common/ids.js';
import { wholeAbove0 } from '../common/validate.js';
import { libraryVersion } from '../stores/package-file.js';
import { type Alert } from './alerts/alert.js';
import { type Alerting } from './alerts/alerting.js';
import { type EarlySignal } from './alerts/early.js';
import { type RuleName } from './alerts/rule-names.js';
import { textOf } from './export/text.js';
import { type Family } from './families.js';
import { FamilyReader } from './family-reader.js';
import { type MonitorOptions } from './monitor-options.js';
import {
  NAMED_KINDS,
  OTHER,
  Reading,
  SeriesTable,
  type NamedKind,
  type SeriesRow,
} from './series-table.js';
import { seriesParts, type Counts, type Horizon, type Series, type SeriesKind } from './series.js';
import { historyOf, type SeriesHistory } from './series-history.js';
import { type Facts, type Sources } from './sources.js';
import { Marks } from './marks.js';
import { conditionOf, joinConditions } from './node-condition.js';
import { impactOf, type Impact, type WeighedDocument } from './impact.js';
import { quotaOf, type QuotaDocument } from './quota-view.js';
import { startLine } from './start-line.js';
import { capacityReport, MOST_REPORT_DAYS, type CapacityReport } from './report.js';
import {
  learningOf,
  stateOf,
  type FleetState,
  type HealthDetails,
  type MonitorState,
  type ShownHotValue,
  type ShownKey,
  type StoreState,
} from './state.js';
import { type Fleet, type FleetContext, type FleetSeen } from './fleet/fleet.js';
import { type NodeSeries, type NodeSnapshot } from './fleet/snapshot.js';

const TICK_MS = 1000;
/** A timer that fires a moment early must not make a tick of its own out of the rest of the second. */
const LEAST_TICK_MS = 250;

/** The events of a monitor. */
export interface MonitorEvents {
  /** The figures of another second are there. */
  tick: Tick;
  /** An alert begins, or is over. */
  alert: Alert;
  /** A policy or an app comes near its limit: before anybody is denied, and once a minute at most. */
  early: EarlySignal;
}

/** The figures of another second are there. */
export interface Tick {
  /** On the monitor's own clock: the instant to ask the rings with. */
  readonly nowMicros: number;
}

/** Figures of the node that merges are true for about so long. */
const LED_MICROS = 10_000_000;

const SHOWN_KEYS = 10;
const SHOWN_HASH = 8;
const SALT_BYTES = 16;

/**
 * Watches what this process does: once a second it reads what the features have counted, and keeps the
 * differences at three horizons. Nothing is told to it by a decision. Abstract, so that it is its own injection token.
 */
export abstract class RateLimitMonitor {
  /** @internal Whose time it has. */
  abstract readonly clock: Clock;

  /** The work of this process in the last seconds, and its condition. */
  abstract state(): MonitorState;

  /** A series of this process at one horizon: 120 s, 180 min or 168 h. Undefined if there is none. */
  abstract history(name: string, horizon: Horizon): SeriesHistory | undefined;

  /**
   * All processes that share the store, as one of them has merged it; asked again and again, it is up to date to a second.
   * Undefined if `fleet: false`, in the first seconds, and while the store cannot be read.
   */
  abstract fleet(): Promise<FleetState | undefined>;

  /** @internal The fleet as this process has seen it last, however long ago. */
  abstract lastFleet(): FleetState | undefined;

  /** A series of all processes; of seconds those since this process asks for `fleet()`. */
  abstract fleetHistory(name: string, horizon: Horizon): Promise<SeriesHistory | undefined>;

  /** How much was used in the last days (1 to 7), by the whole fleet, and when it will not be enough. */
  abstract report(days?: number): Promise<CapacityReport>;

  /** @internal What a change of limits would have done in the last three hours. */
  abstract impact(before: WeighedDocument, after: WeighedDocument): Promise<Impact>;

  /** All metrics, as data. */
  abstract families(): Family[];

  /** All metrics, in the text format of Prometheus. */
  abstract text(): string;

  /** Alerts that fire, may soon, or are over since a minute. Those of a whole fleet are in `fleet()`. */
  abstract alerts(): Alert[];

  /** Alerts of a rule are looked at, but not told until then: of one series, or of all. Resolves when the fleet knows. */
  abstract mute(rule: RuleName, series: string | undefined, until: Date): Promise<void>;

  /** @internal What a health check tells, from what is known: the store is not asked. */
  abstract health(): HealthDetails;

  /** @internal A key as it is shown: itself, or the beginning of its hash. */
  abstract shownKey(key: string): string;

  /** @internal What is kept of `total`, of the `store`, or of an app, a policy or a resource by name. */
  abstract series(kind: SeriesKind, name?: string): Series | undefined;

  /** @internal All that is kept. */
  abstract allSeries(): Series[];

  /** Listens; the result stops listening. */
  abstract on<N extends keyof MonitorEvents>(
    name: N,
    listener: (event: MonitorEvents[N]) => void,
  ): () => void;
}

export class Monitor extends RateLimitMonitor {
  private readonly events = new EventHub<MonitorEvents>(['tick', 'alert', 'early']);
  private readonly reading = new Reading();
  private readonly table: SeriesTable;
  private readonly families_ = new FamilyReader();
  private readonly version = libraryVersion();
  private readAtMicros: number;
  private stopTicks: Cancel | undefined;
  private readonly incarnation = newIncarnation();
  private readonly marks = new Marks();
  private storeBefore = true;
  private storeSinceMs: number | undefined;
  /** The quota of the configuration. */
  document: QuotaDocument = {};
  /** The cluster, or the service if there is no cluster. */
  cluster = 'default';
  /** The facts that only the node that merges knows, while this process is that node. */
  private led:
    | {
        readonly ledger: QuotaStatus | undefined;
        readonly behind: number;
        readonly atMicros: number;
      }
    | undefined;
  /** The salt of the hashes of keys; a fleet shares one. */
  salt: Uint8Array = randomBytes(SALT_BYTES);
  /** The path of the dashboard, where there is one. */
  dashboard: string | undefined;
  /** Set where figures are shared with other processes. */
  shared: Fleet | undefined;

  constructor(
    private readonly nodeId: string,
    private readonly options: MonitorOptions,
    private readonly sources: Sources,
    readonly clock: Clock,
    /** Called if a tick has failed: the next one is tried all the same. */
    private readonly failed: (error: unknown) => void = () => {},
    private readonly alerting?: Alerting,
  ) {
    super();
    alerting?.listen({
      alert: (alert) => this.events.emit('alert', alert),
      early: (signal) => this.events.emit('early', signal),
    });
    this.table = new SeriesTable(options.maxSeries);
    this.readAtMicros = clock.now();
  }

  start(): void {
    if (this.stopTicks !== undefined) return;
    const sinceTick = (this.clock.now() / 1000) % TICK_MS;
    const rest = TICK_MS - sinceTick;
    // At the beginning of each second, so that every second is one slot, however long ticks take.
    this.stopTicks = later(this.clock, rest < LEAST_TICK_MS ? rest + TICK_MS : rest, () => {
      // When the loop turns again: seconds that it has missed are a gap, not as many ticks at once.
      this.stopTicks = undefined;
      const stop = this.clock.soon(() => {
        this.stopTicks = undefined;
        this.start();
      });
      this.stopTicks ??= stop;
      try {
        this.tick();
      } catch (error) {
        this.failed(error);
      }
    });
  }

  stop(): void {
    this.stopTicks?.();
    this.stopTicks = undefined;
    this.sources.stop();
    this.alerting?.close();
  }

  state(): MonitorState {
    const nowMicros = this.clock.now();
    const facts = this.sources.facts();
    const condition = joinConditions([conditionOf(facts)]);
    const { resources, line } = condition;
    const series = this.table.all().map((one) => stateOf(one, nowMicros));
    const { document } = this;
    const status = this.leading()?.ledger;
    return {
      atMs: Math.round(this.clock.epochMs(nowMicros)),
      nodeId: this.nodeId,
      cluster: this.cluster,
      nodeCount: facts.limiter.store?.nodes ?? 1,
      series,
      deniedKeys: this.deniedKeys(),
      hotValues: this.hotValues(),
      store: facts.calls === undefined ? undefined : this.storeOf(condition.store),
      quota: quotaOf({ stats: facts.limiter.quota, status, document, condition, series }),
      resources,
      line,
      config: facts.config && condition.config,
      alerts: this.alerts(),
      learning: learningOf(this.table.total, nowMicros),
      marks: this.marks.all(),
    };
  }

  history(name: string, horizon: Horizon): SeriesHistory | undefined {
    const parts = seriesParts(name);
    const ring = parts && this.table.find(parts.kind, parts.name)?.ring(horizon);
    if (ring === undefined) return undefined;
    const nowMicros = this.clock.now();
    return historyOf({ name, horizon, ring }, nowMicros, this.clock.epochMs(nowMicros));
  }

  health(): HealthDetails {
    const facts = this.sources.facts();
    const { storeIsUp, revision, modes, resources } = conditionOf(facts);
    const behind = this.leading()?.behind;
    const isPartial = (phase: string | undefined): boolean =>
      phase !== undefined && phase !== 'normal' && phase !== 'disabled';
    return {
      store: facts.calls === undefined ? 'memory' : storeIsUp ? 'up' : 'away',
      answering: true,
      revision,
      ...(behind !== undefined && { behind }),
      offlineApps: modes.flatMap(([app, mode]) => (mode === 'offline' ? [app] : [])),
      degraded: resources.flatMap(({ resource, phase }) => (isPartial(phase) ? [resource] : [])),
      firing: this.alerting?.firing().reduce((sum, { count }) => sum + count, 0) ?? 0,
    };
  }

  /** One line for the log, when the process starts. */
  async startLine(): Promise<string> {
    const { limiter, config } = this.sources.facts();
    const { version, nodeId, dashboard } = this;
    const store = await this.sources.describeStore();
    return startLine({
      ...{ version, store, nodeId, dashboard, revision: config?.revision ?? 0 },
      nodes: limiter.store?.nodes ?? 1,
      policies: Object.keys(limiter.policies).length,
      apps: Object.keys(limiter.quota?.apps ?? {}).length,
    });
  }

  fleet(): Promise<FleetState | undefined> {
    return this.shared?.state() ?? Promise.resolve(undefined);
  }

  lastFleet(): FleetState | undefined {
    return this.shared?.lastSeen;
  }

  fleetHistory(name: string, horizon: Horizon): Promise<SeriesHistory | undefined> {
    return this.shared?.historyOf(name, horizon) ?? Promise.resolve(undefined);
  }

  async report(days = MOST_REPORT_DAYS): Promise<CapacityReport> {
    wholeAbove0('days', days, MOST_REPORT_DAYS);
    const { cluster, document } = this;
    const quota = this.sources.facts().limiter.quota?.apps ?? {};
    const limits = { capacity: document.cluster?.capacity, apps: quota };
    return capacityReport({ cluster, limits, days, ...(await this.past('hours')) });
  }

  async impact(before: WeighedDocument, after: WeighedDocument): Promise<Impact> {
    const { table, nowMicros } = await this.past('minutes');
    return impactOf(before, after, table, nowMicros);
  }

  /** The history of the whole fleet, or of this process where that is all there is. */
  private async past(horizon: 'minutes' | 'hours') {
    const now = this.clock.now();
    const epochMs = this.clock.epochMs(now);
    const table = await this.shared?.table(horizon);
    if (table === undefined) {
      return { table: this.table, series: this.table.all(), nowMicros: now, epochMs };
    }
    return { table, series: table.all(), nowMicros: epochMs * 1000, epochMs };
  }

  /** The facts that this process adds to the figures that it has merged. */
  async fleetContext({ merge, condition, series, epochMicros }: FleetSeen): Promise<FleetContext> {
    const facts = this.sources.facts();
    await this.alerting?.lookAtFleet({ epochMicros, facts, merge, condition });
    const { document, cluster } = this;
    const status = await this.sources.quotaStatus();
    const behind = condition.config?.behind ?? 0;
    this.led = { ledger: status, behind, atMicros: this.clock.now() };
    return {
      cluster,
      store: facts.calls === undefined ? undefined : this.storeOf(condition.store),
      quota: quotaOf({ stats: facts.limiter.quota, status, document, condition, series }),
      alerts: this.alerts(),
      marks: this.marks.all(),
    };
  }

  /** Whether anything asks for figures more often than usual. */
  isAlarmed: () => boolean = () => false;

  /** The counts of this process since its start, for the others. */
  snapshot(): NodeSnapshot {
    const facts = this.sources.facts();
    this.fill(facts);
    this.table.admitAll(this.reading);
    return {
      node: this.nodeId,
      incarnation: this.incarnation,
      atMs: this.clock.now() / 1000,
      ...conditionOf(facts),
      series: this.seriesRows(),
      deniedKeys: this.deniedKeys(),
      hotValues: this.hotValues(),
    };
  }

  families(): Family[] {
    const led = this.leading();
    const own = this.sources.facts();
    const facts: Facts = { ...own, ledger: led?.ledger, nodesBehind: led?.behind };
    // A name that has counted since the last tick gets its place first: no series may begin as part of another.
    this.fill(facts);
    this.table.admitAll(this.reading);
    const { table, version } = this;
    const of = (kind: NamedKind, name: string): string | undefined => {
      if (table.isNamed(kind, name)) return name;
      return table.isLeftOut(kind, name) ? OTHER : undefined;
    };
    const firing = this.alerting?.firing() ?? [];
    return this.families_.read(facts, { of, dropped: table.dropped, version, firing });
  }

  text(): string {
    return textOf(this.families());
  }

  alerts(): Alert[] {
    return this.alerting?.list() ?? [];
  }

  async mute(rule: RuleName, series: string | undefined, until: Date): Promise<void> {
    await this.alerting?.mute(rule, series, until);
  }

  series(kind: SeriesKind, name?: string): Series | undefined {
    return this.table.find(kind, name);
  }

  allSeries(): Series[] {
    return this.table.all();
  }

  on<N extends keyof MonitorEvents>(
    name: N,
    listener: (event: MonitorEvents[N]) => void,
  ): () => void {
    return this.events.on(name, listener);
  }

  private tick(): void {
    const nowMicros = this.clock.now();
    const spanMs = (nowMicros - this.readAtMicros) / 1000;
    this.readAtMicros = nowMicros;
    const facts = this.sources.tick();
    this.fill(facts);
    // The figures are of the second that has just ended; after a stall all of them are.
    const atMicros = nowMicros - (Math.min(spanMs, TICK_MS) * 1000) / 2;
    this.table.read(atMicros, spanMs, this.reading);
    this.markChanges(facts, nowMicros);
    this.alerting?.look({ nowMicros, facts, series: this.table.all() });
    this.events.emit('tick', { nowMicros });
    this.shared?.tick(nowMicros);
  }

  private leading(): Monitor['led'] {
    const { led } = this;
    return led !== undefined && this.clock.now() - led.atMicros < LED_MICROS ? led : undefined;
  }

  private markChanges(facts: Facts, nowMicros: number): void {
    const atMs = Math.round(this.clock.epochMs(nowMicros));
    this.marks.look(facts, atMs);
    if (facts.storeIsUp !== this.storeBefore) this.storeSinceMs = atMs;
    this.storeBefore = facts.storeIsUp;
  }

  private storeOf(store: Pick<StoreState, 'isUp' | 'awayNodes'>): StoreState {
    // Of another node that it does not answer, this one has not seen when that began.
    const isKnown = store.awayNodes === 0 || !this.storeBefore;
    return { ...store, sinceMs: isKnown ? this.storeSinceMs : undefined };
  }

  private seriesRows(): NodeSeries[] {
    const { total, store } = this.reading;
    const rows: NodeSeries[] = [
      { kind: 'total', name: '', counts: countsOf(total), times: total.times },
      { kind: 'store', name: '', counts: countsOf(store), times: store.times },
    ];
    for (const kind of NAMED_KINDS) {
      for (const [name, row] of this.reading.named[kind]) {
        if (!this.table.isNamed(kind, name)) continue;
        rows.push({ kind, name, counts: countsOf(row), times: row.times });
      }
      const others = this.table.othersOf(kind, this.reading);
      if (others !== undefined) rows.push({ kind, name: OTHER, counts: others, times: undefined });
    }
    return rows;
  }

  private fill(facts: Facts): void {
    this.reading.clear();
    this.sources.read(facts, this.reading);
  }

  private deniedKeys(): ShownKey[] {
    if (this.options.keys === 'off') return [];
    return this.sources.deniedKeys(SHOWN_KEYS).map((one) => {
      const failureMode =
        one.source === 'fallback' ? this.sources.failureModeOf(one.policy) : undefined;
      return { ...one, key: this.shownKey(one.key), ...(failureMode && { failureMode }) };
    });
  }

  private hotValues(): ShownHotValue[] {
    if (this.options.keys === 'off') return [];
    return this.sources.hotValues(SHOWN_KEYS).map(({ policy, key, perPeriod }) => {
      return { policy, key: this.shownKey(key), perPeriod };
    });
  }

  shownKey(key: string): string {
    if (this.options.keys === 'plain') return key;
    return createHmac('sha256', this.salt).update(key).digest('hex').slice(0, SHOWN_HASH);
  }
}

function countsOf({ times: _times, perSecond: _rates, ...counts }: SeriesRow): Counts {
  return counts;
}
