import { later, type Cancel, type Clock } from '../../../common/clock.js';
import { jitterUp } from '../../../common/jitter.js';
import { type Alert } from '../alert.js';

/** Where alerts go. A rejection means: not delivered, ask again. */
export interface AlertSink {
  /** For messages. */
  readonly name?: string;
  /** An alert that fires is sent again so often. Default: once. */
  readonly repeatMs?: number;
  send(batch: readonly Alert[]): Promise<void> | void;
  /** The application ends: whatever is under way is given up. */
  close?(): void;
}

/** A sink rejects with this where asking again has no use, or to say when it has. */
export class AlertNotSentError extends Error {
  constructor(
    message: string,
    readonly retry: 'never' | { readonly afterMs: number },
  ) {
    super(message);
  }
}

const MOST_QUEUED = 256;
const MOST_IN_CALL = 100;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** After so long without success what is on its way is given up: it is no news any more. */
const GIVE_UP_MS = 600_000;

/** Told once a minute at most, by whoever writes the log. */
export type SinkFault = (name: string, text: string) => void;

/**
 * Alerts on their way to one sink: bounded, in order, one call at a time. A sink that is slow or away delays
 * nothing but itself.
 */
export class SinkQueue {
  private queue: Alert[] = [];
  private isSending = false;
  private isClosed = false;
  private waitMs = FIRST_WAIT_MS;
  private failingSinceMicros: number | undefined;
  private cancelWait: Cancel | undefined;
  private repeatedAtMicros = 0;
  /** Alerts that were never delivered. */
  dropped = 0;

  constructor(
    private readonly sink: AlertSink,
    private readonly clock: Clock,
    private readonly fault: SinkFault,
  ) {}

  get name(): string {
    return this.sink.name ?? 'sink';
  }

  push(alerts: readonly Alert[]): void {
    if (this.isClosed) return;
    this.queue.push(...alerts);
    while (this.queue.length > MOST_QUEUED) this.dropOne();
    this.send();
  }

  /** Sends what fires again, where the sink wants that. */
  repeat(firing: () => readonly Alert[]): void {
    const { repeatMs } = this.sink;
    const nowMicros = this.clock.now();
    if (repeatMs === undefined || nowMicros - this.repeatedAtMicros < repeatMs * 1000) return;
    this.repeatedAtMicros = nowMicros;
    // While the sink is away, what waits says it already.
    if (this.queue.length === 0) this.push(firing());
  }

  close(): void {
    this.isClosed = true;
    this.cancelWait?.();
    this.sink.close?.();
  }

  /** The end of what began long ago is what is missed least. */
  private dropOne(): void {
    const place = this.queue.findIndex(({ state }) => state === 'resolved');
    this.queue.splice(Math.max(place, 0), 1);
    this.dropped++;
  }

  private send(): void {
    if (this.isSending || this.isClosed || this.queue.length === 0) return;
    if (this.cancelWait !== undefined) return;
    this.isSending = true;
    const batch = this.queue.splice(0, MOST_IN_CALL);
    void this.sendBatch(batch).finally(() => {
      this.isSending = false;
      this.send();
    });
  }

  private async sendBatch(batch: readonly Alert[]): Promise<void> {
    try {
      await this.sink.send(batch);
      this.waitMs = FIRST_WAIT_MS;
      this.failingSinceMicros = undefined;
    } catch (error) {
      if (!this.isClosed) this.failed(batch, error);
    }
  }

  private failed(batch: readonly Alert[], error: unknown): void {
    const nowMicros = this.clock.now();
    const retry = error instanceof AlertNotSentError ? error.retry : undefined;
    this.failingSinceMicros ??= nowMicros;
    const isLost = retry === 'never' || nowMicros - this.failingSinceMicros >= GIVE_UP_MS * 1000;
    const text = error instanceof Error ? error.message : String(error);
    this.fault(this.name, isLost ? `${text}; ${batch.length} alerts are lost` : text);
    if (isLost) {
      this.dropped += batch.length;
      this.failingSinceMicros = undefined;
      if (retry === 'never') return;
    } else {
      this.queue.unshift(...batch);
      while (this.queue.length > MOST_QUEUED) this.dropOne();
    }
    const ownMs = typeof retry === 'object' ? Math.min(retry.afterMs, GIVE_UP_MS) : 0;
    const waitMs = Math.max(ownMs, jitterUp(this.waitMs, this.clock.random()));
    this.waitMs = Math.min(this.waitMs * 2, LONGEST_WAIT_MS);
    this.cancelWait = later(this.clock, waitMs, () => {
      this.cancelWait = undefined;
      this.send();
    });
  }
}
