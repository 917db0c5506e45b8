import { type Cancel, type Clock } from '../../common/clock.js';
import { StoreTimeoutError, StoreUnavailableError } from '../../common/errors.js';
import { CallKind, type StoreCall } from '../remote-store.js';
import { Batch } from './batch.js';
import { StoreBreaker } from './store-breaker.js';
import { type RedisKeys } from './keys.js';
import { type CallTimes } from '../call-times.js';

/** The connection of a lane. */
export interface LaneLink {
  readonly timeoutMs: number;
  readonly maxBatch: number;
  readonly calls: CallTimes;
  state(): 'ready' | 'connecting' | 'lost';
  lastError(): Error | undefined;
  /** Rejects if the reply is not the one to the batch. */
  send(batch: Batch): Promise<readonly number[]>;
  probe(shard: number): Promise<void>;
  laneOpened(lane: Lane, reason: StoreUnavailableError): void;
  laneClosed(lane: Lane): void;
  /** A bucket has limits of a later revision than the call had. */
  laterRevision(revision: number): void;
}

/**
 * One way to Redis: gathers the calls of an event-loop turn, sends them together, and answers each
 * by its deadline whatever happens. A single server is one lane; on Redis Cluster there is one per
 * shard, so that the loss of one master does not stop the others.
 */
export class Lane {
  private readonly breaker: StoreBreaker;
  private gathering: Batch | undefined;
  private underway = 0;
  private whenIdle: (() => void) | undefined;
  private cancelFlush: Cancel | undefined;
  /** Late answers are being delivered: calls that follow from them reach the store, which has just answered. */
  private isDeliveringLate = false;

  constructor(
    private readonly shard: number,
    private readonly names: RedisKeys,
    private readonly link: LaneLink,
    private readonly clock: Clock,
  ) {
    this.breaker = new StoreBreaker(clock, () => link.probe(shard), {
      opened: (reason) => link.laneOpened(this, reason),
      closed: () => link.laneClosed(this),
    });
  }

  submit(call: StoreCall): void {
    if (this.breaker.isOpen && !this.isDeliveringLate)
      return failUnsent(call, new StoreUnavailableError('it does not answer'));
    const batch = (this.gathering ??= this.begin());
    if (batch.size >= MOST_CONNECTING) return failUnsent(call, STILL_CONNECTING);
    batch.add(call);
    if (batch.size >= this.link.maxBatch) this.flush();
  }

  /** Sends the calls gathered so far. While the first connection is made, the lane goes on gathering. */
  flush(): void {
    const batch = this.gathering;
    if (batch === undefined || this.link.state() === 'connecting') return;
    this.gathering = undefined;
    this.cancelFlush?.();
    if (this.link.state() === 'lost') return this.lose(batch, 'no connection');
    this.underway++;
    const sentAt = this.clock.now();
    this.link
      .send(batch)
      .then(
        (reply) => {
          this.link.calls.answered('buckets', this.clock.now() - sentAt, batch.size);
          this.answered(batch, reply);
        },
        (error: unknown) => this.sendFailed(batch, error),
      )
      .finally(() => {
        if (--this.underway === 0) this.whenIdle?.();
      });
  }

  /** Sends the calls gathered so far, and resolves when none is on its way any more. */
  async drain(): Promise<void> {
    this.flush();
    if (this.underway > 0) await new Promise<void>((resolve) => (this.whenIdle = resolve));
  }

  /** The connection is back: find out soon whether the store is. */
  hint(): void {
    this.breaker.hint();
    this.flush();
  }

  stop(reason: StoreUnavailableError): void {
    this.breaker.stop();
    this.cancelFlush?.();
    const batch = this.gathering;
    this.gathering = undefined;
    if (batch !== undefined) batch.fail(reason);
  }

  private begin(): Batch {
    const deadline = this.clock.after(this.link.timeoutMs, () => this.deadlineReached(batch));
    const batch = new Batch(this.names, this.clock.now(), deadline);
    this.cancelFlush = this.clock.soon(() => this.flush());
    return batch;
  }

  private answered(batch: Batch, reply: readonly number[]): void {
    if (batch.failed) return this.deliverLate(batch, reply);
    batch.answered = true;
    batch.cancelDeadline();
    this.breaker.succeeded();
    batch.deliver(reply, 'settled');
    const revision = batch.laterRevision(reply);
    if (revision > 0) this.link.laterRevision(revision);
  }

  /** Tokens that go back and debts must not be lost, which they would be while the breaker is still open. */
  private deliverLate(batch: Batch, reply: readonly number[]): void {
    this.isDeliveringLate = true;
    batch.deliver(reply, 'settledLate');
    this.isDeliveringLate = false;
  }

  private sendFailed(batch: Batch, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    // An error that is no answer of the server means that there is no way to it.
    if (!isReply(error)) return this.lose(batch, reason, error);
    if (!batch.failed) {
      this.link.calls.failed('buckets', error);
      const failure = new StoreUnavailableError(reason, { cause: error });
      this.breaker.failed(failure, batch.begunAt);
      batch.fail(failure);
    }
    batch.endUnanswered();
  }

  private lose(batch: Batch, reason: string, cause?: unknown): void {
    const failure =
      cause instanceof StoreUnavailableError ? cause : new StoreUnavailableError(reason, { cause });
    this.breaker.open(failure);
    if (!batch.failed) {
      this.link.calls.failed('buckets', failure);
      batch.fail(failure);
    }
    batch.endUnanswered();
  }

  /**
   * A timer that is late itself means that this process was busy, and the reply may well be here:
   * Node runs timers before it reads sockets. So the sockets get their turn first.
   */
  private deadlineReached(batch: Batch): void {
    const lateMicros = this.clock.now() - batch.begunAt - this.link.timeoutMs * 1000;
    if (lateMicros > LATE_MICROS) this.clock.soon(() => this.expire(batch));
    else this.expire(batch);
  }

  private expire(batch: Batch): void {
    if (batch.answered || batch.failed) return;
    const wasSent = this.gathering !== batch;
    if (!wasSent) this.gathering = undefined;
    const failure = new StoreTimeoutError(this.link.timeoutMs, this.link.lastError());
    if (this.link.state() === 'ready') this.breaker.failed(failure, batch.begunAt);
    else this.breaker.open(failure);
    this.link.calls.failed('buckets', failure);
    batch.fail(failure);
    if (!wasSent) batch.endUnanswered();
  }
}

const LATE_MICROS = 5000;
/** While the first connection is made, so many calls wait for it; the rest need not. */
const MOST_CONNECTING = 1024;
const STILL_CONNECTING = new StoreUnavailableError('still connecting, and enough calls wait');

function failUnsent(call: StoreCall, reason: StoreUnavailableError): void {
  call.failed(reason);
  if (call.kind !== CallKind.Lease) call.unanswered?.(call.checks);
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError';
}
