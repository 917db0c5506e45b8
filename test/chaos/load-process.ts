import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';
import { ObedientProcess } from '../support/obedient-process.js';
import { exited, hasExited } from '../support/processes.js';
import { until } from '../support/until.js';
import { admissionsOf, type Admission } from './admissions.js';
import {
  namesOf,
  type Happening,
  type Order,
  type ProcessSetup,
  type Report,
  type Standstill,
  type Stream,
  type Totals,
} from './process/protocol.js';

const MAIN = join(root, 'build/test/chaos/process/main.js');
/** Starting and ending are not what is judged: a machine busy with other things may take its time. */
const PATIENCE_MS = 60_000;

/** A process of the fleet, as seen from the test. */
export class LoadProcess extends ObedientProcess<Order, Report> {
  readonly admissions: Admission[] = [];
  readonly happenings: (Happening & { readonly atMicros: number })[] = [];
  /** The part of the requests of each report that was decided before the call returned. */
  readonly localShares: number[] = [];
  readonly standstills: Standstill[] = [];
  /** All that it admitted before is known here. */
  upToMicros = 0;
  private readonly apps: readonly string[];
  private totals: Totals | undefined;
  private isOpen = false;
  private isPaused = false;

  private constructor(setup: ProcessSetup) {
    super(MAIN);
    this.apps = namesOf(setup);
    this.order({ order: 'open', setup });
  }

  static async start(setup: ProcessSetup): Promise<LoadProcess> {
    const started = new LoadProcess(setup);
    await started.until(() => started.isOpen, 'a process to open its limiter', PATIENCE_MS);
    return started;
  }

  get isRunning(): boolean {
    return !hasExited(this.child) && !this.isPaused;
  }

  offer(...streams: Stream[]): void {
    this.order({ order: 'load', streams });
  }

  /** Ends the load, waits for all answers, closes the limiter; resolves when the process is gone. */
  async close(): Promise<Totals> {
    this.order({ order: 'close' });
    const totals = await this.until(
      () => this.totals,
      'a process to close its limiter',
      PATIENCE_MS,
    );
    await until(() => hasExited(this.child), {
      what: 'a process with a closed limiter to end by itself',
      timeoutMs: PATIENCE_MS,
    });
    return totals;
  }

  /** SIGKILL: it cannot give anything back. */
  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await exited(this.child);
  }

  pause(): void {
    this.isPaused = true;
    this.child.kill('SIGSTOP');
  }

  resume(): void {
    this.isPaused = false;
    this.child.kill('SIGCONT');
  }

  /** The modes that the app went through, in order. */
  modesOf(app: string): string[] {
    return this.happenings.flatMap((one) =>
      one.name === 'mode' && one.app === app ? [one.mode] : [],
    );
  }

  protected get isDone(): boolean {
    return this.totals !== undefined;
  }

  protected hear(report: Report): void {
    switch (report.report) {
      case 'opened':
        this.isOpen = true;
        return;
      case 'progress':
        this.upToMicros = report.upToMicros;
        this.standstills.push(...report.standstills);
        this.admissions.push(...admissionsOf(report.admissions, this.apps));
        if (report.asked > 0) this.localShares.push(report.atOnce / report.asked);
        return;
      case 'happening':
        this.happenings.push({ ...report.happening, atMicros: report.atMicros });
        return;
      case 'closed':
        this.totals = report.totals;
        return;
      case 'broken':
        this.broken = report.reason;
    }
  }
}
