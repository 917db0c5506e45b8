import { type Clock } from '../../common/clock.js';
import { type BoardStore } from '../../stores/board-store.js';
import { type FiringCount } from '../families.js';
import { type FleetMerge } from '../fleet/merge.js';
import { type JoinedCondition } from '../node-condition.js';
import { type Series } from '../series.js';
import { type Facts } from '../sources.js';
import { type Alert } from './alert.js';
import { Alerts } from './alerts.js';
import { type AlertsInput } from './alerts.schema.js';
import { statesOfFleet, statesOfProcess } from './conditions.js';
import { EarlySignals, type EarlySignal } from './early.js';
import { FleetAlerts } from './fleet-alerts.js';
import { Mutes } from './mutes.js';
import { type RuleName } from './rule-names.js';
import { checkAlerts } from './rules.js';
import { SinkQueue, type AlertSink, type SinkFault } from './sinks/sink.js';

export interface AlertingDeps {
  readonly nodeId: string;
  /** The service, where no cluster has a name. */
  readonly service: string;
  readonly clock: Clock;
  readonly sinks: readonly AlertSink[];
  readonly fault: SinkFault;
  /** Where the fleet is: then one process tells for all of them, and each only what it must see for itself. */
  readonly board?: BoardStore;
}

/** The fields of a document that alerts go by. */
export interface WatchedDocument {
  readonly apps?: Readonly<Record<string, { readonly priority?: number | undefined }>> | undefined;
  readonly alerts?: AlertsInput | undefined;
  readonly cluster?:
    | { readonly capacity?: number | undefined; readonly id?: string | undefined }
    | undefined;
}

/** The listeners within this process. */
export interface AlertListeners {
  alert(alert: Alert): void;
  early(signal: EarlySignal): void;
}

/** The counts of a process, as of one second. */
export interface ProcessSeen {
  readonly nowMicros: number;
  readonly facts: Facts;
  readonly series: readonly Series[];
}

/** The counts of all processes, as one of them has merged them. */
export interface MergedSeen {
  /** Since 1970. */
  readonly epochMicros: number;
  readonly facts: Facts;
  readonly merge: FleetMerge;
  readonly condition: JoinedCondition;
}

/** The alerts of a process, and those of the fleet while it leads: told to its listeners, and sent to its sinks. */
export class Alerting {
  private readonly own: Alerts;
  /** Undefined where there is no fleet, so that the process tells of all. */
  readonly fleet: FleetAlerts | undefined;
  readonly queues: readonly SinkQueue[];
  private readonly mutes: Mutes;
  private readonly early: EarlySignals;
  private listeners: AlertListeners | undefined;

  constructor({ sinks, fault, service, board, ...deps }: AlertingDeps) {
    this.queues = sinks.map((sink) => new SinkQueue(sink, deps.clock, fault));
    const isOwn = ({ name }: { readonly name: string }): boolean => name === 'storeAway';
    const origin = { ...deps, cluster: service };
    if (board === undefined) this.own = new Alerts(origin);
    else {
      this.own = new Alerts({ ...origin, watches: isOwn });
      const all = new Alerts({ ...origin, watches: (rule) => !isOwn(rule), isWallTime: true });
      this.fleet = new FleetAlerts(all, board, (alerts) => this.tell(alerts));
    }
    this.mutes = new Mutes(
      deps.clock,
      (mutes) => {
        for (const alerts of this.all) alerts.mute(mutes);
      },
      board,
    );
    this.early = new EarlySignals((signal) => this.listeners?.early(signal));
  }

  listen(listeners: AlertListeners): void {
    this.listeners = listeners;
  }

  /** Alerts that are not quiet, those that fire first. */
  list(): Alert[] {
    const order = ['firing', 'pending', 'resolved'];
    return this.all
      .flatMap((alerts) => alerts.list())
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.sinceMs - b.sinceMs);
  }

  firing(): FiringCount[] {
    return this.all.flatMap((alerts) => alerts.firing());
  }

  /** Whether anything fires, or may soon. */
  get isAlarmed(): boolean {
    return this.all.some((alerts) => alerts.isAlarmed);
  }

  /** Checks the rules of a document; the result puts them in force. */
  prepare({ alerts, cluster }: WatchedDocument): () => void {
    const settings = checkAlerts(alerts);
    const { capacity, id } = cluster ?? {};
    return () => {
      for (const one of this.all) one.change(settings, { capacity, cluster: id });
    };
  }

  mute(rule: RuleName, series: string | undefined, until: Date): Promise<void> {
    return this.mutes.add(rule, series, until);
  }

  /** A second of this process has passed. */
  look({ nowMicros, facts, series }: ProcessSeen): void {
    this.early.look(facts, series, nowMicros);
    this.own.look({
      ...{ nowMicros, series, states: statesOfProcess(facts), nodes: nodesOf(facts) },
      ceilingOf: (app) => facts.limiter.quota?.apps[app]?.burst,
    });
    const changes = this.own.changes(nowMicros);
    if (changes.length > 0) this.tell(changes);
    const firing = (): Alert[] =>
      this.list().filter(({ state, muted }) => state === 'firing' && !muted);
    for (const queue of this.queues) queue.repeat(firing);
  }

  /** The figures of the fleet were merged by this process. */
  async lookAtFleet({ epochMicros, facts, merge, condition }: MergedSeen): Promise<void> {
    await this.mutes.read();
    await this.fleet?.look({
      ...{ nowMicros: epochMicros, series: merge.table.all(), nodes: nodesOf(facts) },
      states: statesOfFleet(merge, condition),
      ceilingOf: (app) => facts.limiter.quota?.apps[app]?.burst,
    });
  }

  close(): void {
    for (const queue of this.queues) queue.close();
  }

  private tell(alerts: readonly Alert[]): void {
    for (const alert of alerts) this.listeners?.alert(alert);
    for (const queue of this.queues) queue.push(alerts);
  }

  private get all(): Alerts[] {
    return this.fleet === undefined ? [this.own] : [this.own, this.fleet.alerts];
  }
}

const nodesOf = ({ limiter }: Facts): number => limiter.store?.nodes ?? 1;
