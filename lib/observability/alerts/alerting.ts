import { type Clock } from '../../common/clock.js';
import { type Alert } from './alert.js';
import { Alerts, type AlertLead, type Seen } from './alerts.js';
import { type AlertsInput } from './alerts.schema.js';
import { EarlySignals, type EarlySignal } from './early.js';
import { checkAlerts } from './rules.js';
import { SinkQueue, type AlertSink, type SinkFault } from './sinks/sink.js';

export interface AlertingParts {
  readonly nodeId: string;
  /** The service, where no cluster has a name. */
  readonly service: string;
  readonly clock: Clock;
  readonly sinks: readonly AlertSink[];
  readonly fault: SinkFault;
  readonly lead?: AlertLead;
}

/** What is read of a document. */
export interface WatchedDocument {
  readonly apps?: Readonly<Record<string, { readonly priority?: number | undefined }>> | undefined;
  readonly alerts?: AlertsInput | undefined;
  readonly cluster?:
    { readonly capacity?: number | undefined; readonly id?: string | undefined } | undefined;
}

/** Who hears of alerts within this process. */
export interface AlertListeners {
  alert(alert: Alert): void;
  early(signal: EarlySignal): void;
}

/** The alerts of a process: looked at once a second, told to its listeners, and sent to its sinks. */
export class Alerting {
  readonly alerts: Alerts;
  readonly queues: readonly SinkQueue[];
  private readonly early: EarlySignals;
  private listeners: AlertListeners | undefined;

  constructor({ sinks, fault, service, ...parts }: AlertingParts) {
    this.queues = sinks.map((sink) => new SinkQueue(sink, parts.clock, fault));
    const tell = (alerts: readonly Alert[]): void => {
      for (const alert of alerts) this.listeners?.alert(alert);
      for (const queue of this.queues) queue.push(alerts);
    };
    this.alerts = new Alerts({ ...parts, cluster: service, tell });
    this.early = new EarlySignals((signal) => this.listeners?.early(signal));
  }

  listen(listeners: AlertListeners): void {
    this.listeners = listeners;
  }

  /** Checks the rules of a document; the result puts them in force. */
  prepare({ alerts, cluster }: WatchedDocument): () => void {
    const settings = checkAlerts(alerts);
    const { capacity, id } = cluster ?? {};
    return () => this.alerts.change(settings, { capacity, cluster: id });
  }

  look(seen: Seen): void {
    this.early.look(seen.facts, seen.series, seen.nowMicros);
    this.alerts.look(seen);
    const firing = (): Alert[] =>
      this.alerts.list().filter(({ state, muted }) => state === 'firing' && !muted);
    for (const queue of this.queues) queue.repeat(firing);
  }

  close(): void {
    for (const queue of this.queues) queue.close();
  }
}
