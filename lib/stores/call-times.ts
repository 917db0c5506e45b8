import { type Clock } from '../common/clock.js';
import { StoreTimeoutError, StrayReplyError } from '../common/errors.js';
import { LogLinear } from '../common/histogram.js';

/** The purposes of calls to the store: decisions on policies, leases of quotas, the configuration, the figures of the fleet. */
export const STORE_OPS = ['buckets', 'lease', 'config', 'board'] as const;
export type StoreOp = (typeof STORE_OPS)[number];

/** No answer in time, no connection, or an answer that is an error. */
export const FAILURE_KINDS = ['timeout', 'connection', 'reply'] as const;
export type FailureKind = (typeof FAILURE_KINDS)[number];

/** The calls of one purpose. */
export class OpCalls {
  /** From the sending to the answer, also where that came too late for its caller. */
  readonly times = new LogLinear();
  /** Decisions, or whatever else travels together, in all calls. */
  items = 0;
  readonly failures: Record<FailureKind, number> = { timeout: 0, connection: 0, reply: 0 };
}

/** The calls that one client has made, and how long they took. Few: one for all decisions of a turn. */
export class CallTimes implements Readonly<Record<StoreOp, OpCalls>> {
  readonly buckets = new OpCalls();
  readonly lease = new OpCalls();
  readonly config = new OpCalls();
  readonly board = new OpCalls();
  /** Called for each call that was answered; nearly always empty. One event, so no EventHub, which looks up names. */
  readonly listeners = new Set<(op: StoreOp, micros: number) => void>();

  answered(op: StoreOp, micros: number, items: number): void {
    this[op].times.record(micros);
    this[op].items += items;
    for (const listener of this.listeners) listener(op, micros);
  }

  failed(op: StoreOp, error: unknown): void {
    this[op].failures[kindOf(error)]++;
  }

  /** The call, with its time taken. */
  async take<T>(op: StoreOp, clock: Pick<Clock, 'now'>, call: () => Promise<T>): Promise<T> {
    const begunAt = clock.now();
    try {
      const answer = await call();
      this.answered(op, clock.now() - begunAt, 1);
      return answer;
    } catch (error) {
      this.failed(op, error);
      throw error;
    }
  }
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof StoreTimeoutError) return 'timeout';
  if (error instanceof StrayReplyError) return 'reply';
  const { name, cause } = (error ?? {}) as Partial<Error>;
  const isReply =
    name === 'ReplyError' || (cause as Partial<Error> | undefined)?.name === 'ReplyError';
  return isReply ? 'reply' : 'connection';
}
