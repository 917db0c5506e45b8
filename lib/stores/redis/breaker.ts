import { type Cancel, type Clock } from '../../common/clock.js';
import { type StoreUnavailableError } from '../../common/errors.js';

const FAILURES_TO_OPEN = 3;
const FIRST_PROBE_MS = 100;
const LONGEST_PROBE_MS = 2000;
const JITTER = 0.2;

export interface BreakerEvents {
  opened(reason: StoreUnavailableError): void;
  closed(): void;
}

/**
 * Stops asking a store that does not answer, and finds out with one probe at a time when it does
 * again. Closed: ask. Open: do not ask; the probes come at growing, jittered intervals, so that a
 * fleet does not knock all at once.
 */
export class Breaker {
  private failures = 0;
  private countedAt = -Infinity;
  private intervalMs = FIRST_PROBE_MS;
  private nextProbe: Cancel | undefined;
  private probing = false;
  private stopped = false;
  isOpen = false;

  constructor(
    private readonly clock: Clock,
    private readonly probe: () => Promise<void>,
    private readonly events: BreakerEvents,
    private readonly random: () => number = () => clock.random(),
  ) {}

  succeeded(): void {
    this.failures = 0;
    this.intervalMs = FIRST_PROBE_MS;
  }

  /** Of what was on its way at the same time only the first failure counts: one hiccup, one mark. */
  failed(reason: StoreUnavailableError, begunAt: number): void {
    if (this.isOpen || begunAt < this.countedAt) return;
    this.countedAt = this.clock.now();
    if (++this.failures >= FAILURES_TO_OPEN) this.open(reason);
  }

  /** For failures that leave no doubt, such as a lost connection. */
  open(reason: StoreUnavailableError): void {
    if (this.isOpen || this.stopped) return;
    this.isOpen = true;
    this.events.opened(reason);
    this.scheduleProbe();
  }

  /** Something suggests that the store is back: do not wait out the interval. */
  hint(): void {
    if (!this.isOpen || this.probing) return;
    this.intervalMs = FIRST_PROBE_MS;
    this.scheduleProbe(this.random() * FIRST_PROBE_MS * JITTER);
  }

  stop(): void {
    this.stopped = true;
    this.nextProbe?.();
  }

  private scheduleProbe(delayMs = this.intervalMs * (1 + this.random() * JITTER)): void {
    this.nextProbe?.();
    this.nextProbe = this.clock.after(delayMs, () => void this.runProbe());
    this.intervalMs = Math.min(this.intervalMs * 2, LONGEST_PROBE_MS);
  }

  private async runProbe(): Promise<void> {
    this.probing = true;
    const answered = await this.probe().then(
      () => true,
      () => false,
    );
    this.probing = false;
    if (this.stopped) return;
    if (!answered) return this.scheduleProbe();
    this.isOpen = false;
    this.failures = 0;
    this.events.closed();
  }
}
