import { type Clock } from '../../common/clock.js';
import { type Duration } from '../../common/duration.js';
import { type WaitPolicy } from '../../requests/transport.js';
import { type MessageContext } from './message-context.js';

/** The fate of Kafka's events that are over their limit. The initial values are the defaults. */
export class KafkaOptions {
  /**
   * How long an event may wait in place for its tokens, or be held back by a shaper, and with it its
   * partition; what would take longer is dropped. 0 drops at once. Where callers have limits of their own, it is also how long all events
   * of a partition may wait together before they are dropped at once; a tenth of the time that passes
   * comes back.
   */
  maxWait: Duration = '5s';
}

/** The part of the time that a partition may stand still for callers that are over limits of their own. */
const SHARE_OF_TIME = 0.1;

/**
 * How long the events of Kafka may wait where they are: Kafka keeps what is not consumed. Everything
 * behind such an event waits as well. Where all share one limit it would have to in any case; where each
 * caller has its own, one of them must not hold up the others for as long as it keeps sending.
 */
export class KafkaWaiting {
  /** Allowances by topic and partition, of which there are as many as this process consumes. */
  private readonly allowances = new Map<string, Allowance>();

  constructor(
    private readonly maxWaitMs: number,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  /** The wait that an event may have; one of 0 ms means that it is dropped at once. */
  of(message: MessageContext, isLimitShared: boolean): WaitPolicy {
    const allowance = isLimitShared ? undefined : this.allowanceOf(message);
    const maxWaitMs = Math.max(0, allowance?.leftMs() ?? this.maxWaitMs);
    const heartbeat = message.getHeartbeat!();
    return {
      maxWaitMs,
      // A heartbeat fails when the group is being rearranged; the consumer finds out by itself.
      keepAlive: () => void heartbeat().catch(() => undefined),
      begin: () => allowance?.begin(),
      end: () => allowance?.end(),
    };
  }

  private allowanceOf(message: MessageContext): Allowance {
    const at = `${message.getTopic?.()} ${message.getPartition?.()}`;
    let allowance = this.allowances.get(at);
    if (allowance === undefined) {
      allowance = new Allowance(this.maxWaitMs, this.clock);
      this.allowances.set(at, allowance);
    }
    return allowance;
  }
}

/** The waiting that is left to a partition. It comes back with time, up to what one event may wait. */
class Allowance {
  private left: number;
  private atMs: number;
  /** Those that wait: one, unless the application consumes a partition in its own way. */
  private waiting = 0;

  constructor(
    private readonly mostMs: number,
    private readonly clock: Pick<Clock, 'now'>,
  ) {
    this.left = mostMs;
    this.atMs = clock.now() / 1000;
  }

  leftMs(): number {
    const nowMs = this.clock.now() / 1000;
    const passedMs = nowMs - this.atMs;
    this.atMs = nowMs;
    const spentMs = this.waiting === 0 ? 0 : passedMs;
    this.left = Math.min(this.left + passedMs * SHARE_OF_TIME, this.mostMs) - spentMs;
    return this.left;
  }

  begin(): void {
    this.leftMs();
    this.waiting++;
  }

  end(): void {
    this.leftMs();
    this.waiting--;
  }
}
