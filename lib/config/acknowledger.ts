import { type Cancel, later } from '../common/clock.js';
import { type NodeReport } from '../stores/config-store.js';
import { type ConfigSettings } from './config-settings.js';

/** A node counts for so many polls after its last report. */
const POLLS_TO_LIVE = 4;
/** Measured as in quota-node.ts: at once it seems to make the last later, but runs differ as much. */
export const ACKNOWLEDGED_AFTER_MS = 20;

type Settings = Pick<ConfigSettings, 'store' | 'clock' | 'isVisitor'>;

/** Says to the store which revision this process works with. */
export class Acknowledger {
  private said = '';
  private cancel: Cancel = () => {};
  private closed = false;

  constructor(
    private readonly settings: Settings,
    private readonly turns: TaskQueue,
    private readonly pollMs: number,
    private readonly report: () => NodeReport,
  ) {}

  /** All processes change over at the same moment: saying so waits until they have. */
  soon(): void {
    this.cancel();
    if (this.closed) return;
    this.cancel = later(this.settings.clock, ACKNOWLEDGED_AFTER_MS, () => {
      void this.turns.take(() => this.now());
    });
  }

  /** A report that has not changed is left out, unless the node would be forgotten without it. */
  async now({ again = false } = {}): Promise<void> {
    const { store, isVisitor } = this.settings;
    const report = this.report();
    const text = JSON.stringify(report);
    if (isVisitor || this.closed || (text === this.said && !again)) return;
    try {
      await store.acknowledge(report, POLLS_TO_LIVE * this.pollMs);
      this.said = text;
    } catch {
      // The next poll sends the report again.
    }
  }

  close(): void {
    this.closed = true;
    this.cancel();
  }
}

/** Runs tasks one after another, in the order in which they came. */
export class TaskQueue {
  private last: Promise<unknown> = Promise.resolve();

  take<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.last.then(task);
    this.last = turn.catch(() => {});
    return turn;
  }

  /** Resolves when everything that was begun or waits is over. */
  async over(): Promise<void> {
    await this.last;
  }
}
