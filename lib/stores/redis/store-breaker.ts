import { type Cancel, type Clock } from '../../common/clock.js';
import { type StoreUnavailableError } from '../../common/errors.js';
import { JITTER, jitterUp } from '../../common/jitter.js';
import { RetryPause } from '../../common/retry-pause.js';

const FIRST_PROBE_MS = 100;
const LONGEST_PROBE_MS = 2000;

export interface StoreBreakerEvents {
  opened(reason: StoreUnavailableError): void;
  closed(): void;
}

/**
 * Stops calls to a store that does not answer, and finds out with one probe at a time when it does
 * again. Closed: call. Open: do not call; the probes come at growing, jittered intervals, so that a
 * fleet does not knock all at once.
 *
 * `protection/breaker` is another one: it goes by rates of errors, and has callers for probes. Here a lost connection is
 * enough, and no request may wait for a store that is gone.
 */
export class StoreBreaker {
  isOpen = false;
  private readonly probes = new RetryPause(FIRST_PROBE_MS, LONGEST_PROBE_MS);
  private nextProbe: Cancel | undefined;
  private probing = false;
  private stopped = false;

  constructor(
    private readonly clock: Clock,
    private readonly probe: () => Promise<void>,
    private readonly events: StoreBreakerEvents,
    private readonly random: () => number = () => clock.random(),
  ) {}

  succeeded(): void {
    this.probes.succeeded();
  }

  failed(reason: StoreUnavailableError, begunAt: number): void {
    if (this.isOpen) return;
    if (this.probes.failed(this.clock.now(), begunAt)) this.open(reason);
  }

  /** For failures that leave no doubt, such as a lost connection. */
  open(reason: StoreUnavailableError): void {
    if (this.isOpen || this.stopped) return;
    this.isOpen = true;
    this.events.opened(reason);
    this.scheduleProbe();
  }

  /** The store may be back: the next probe need not wait for its time. */
  hint(): void {
    if (!this.isOpen || this.probing) return;
    this.probes.shorten();
    this.scheduleProbe(this.random() * this.probes.begin() * JITTER);
  }

  stop(): void {
    this.stopped = true;
    this.nextProbe?.();
  }

  private scheduleProbe(delayMs = jitterUp(this.probes.begin(), this.random())): void {
    this.nextProbe?.();
    this.nextProbe = this.clock.after(delayMs, () => void this.runProbe());
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
    this.probes.forgive();
    this.events.closed();
  }
}
