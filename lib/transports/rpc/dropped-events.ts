import { Logger } from '@nestjs/common';
import { type Clock } from '../../common/clock.js';

const MICROS_BETWEEN_LINES = 60_000_000;

interface Drops {
  count: number;
  /** What the log has told so far, and when it did last. */
  told: number;
  toldAtMicros: number;
}

/**
 * Counts the events that were denied, and so were dropped: nobody waits for an answer that could
 * say so. Inject it to look at the counts. The log has one line a minute for each handler at most,
 * however many events there are.
 */
export class DroppedEvents {
  private readonly drops = new Map<string, Drops>();
  private readonly logger = new Logger('RateLimitModule');

  /** @internal */
  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  /** Since the start. */
  get total(): number {
    let total = 0;
    for (const { count } of this.drops.values()) total += count;
    return total;
  }

  /** Since the start, by handler: `Class.method`. */
  byHandler(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.drops].map(([handler, { count }]) => [handler, count]));
  }

  /** @internal */
  add(handler: string): void {
    const nowMicros = this.clock.now();
    let drops = this.drops.get(handler);
    if (drops === undefined) {
      drops = { count: 0, told: 0, toldAtMicros: -Infinity };
      this.drops.set(handler, drops);
    }
    drops.count++;
    if (nowMicros - drops.toldAtMicros < MICROS_BETWEEN_LINES) return;
    const dropped = drops.count - drops.told;
    this.logger.warn(
      `${handler}: ${dropped} ${dropped === 1 ? 'event' : 'events'} over the limit dropped`,
    );
    drops.told = drops.count;
    drops.toldAtMicros = nowMicros;
  }
}
