import { Logger } from '@nestjs/common';
import { type Clock } from '../../common/clock.js';
import { Tally } from '../../common/tally.js';

/**
 * Counts the events that were denied, and so were dropped: no caller waits for an answer that could
 * show it. Inject it to look at the counts. The log has one line a minute for each handler at most,
 * however many events there are.
 */
export class DroppedEvents {
  private readonly drops: Tally;
  private readonly logger = new Logger('RateLimitModule');

  /** @internal */
  constructor(clock: Pick<Clock, 'now'>) {
    this.drops = new Tally(clock);
  }

  /** Since the start. */
  get total(): number {
    return this.drops.total;
  }

  /** Since the start, by handler: `Class.method`. */
  byHandler(): Readonly<Record<string, number>> {
    return this.drops.byName();
  }

  /** @internal */
  add(handler: string): void {
    const dropped = this.drops.add(handler);
    if (dropped === undefined) return;
    this.logger.warn(
      `${handler}: ${dropped} ${dropped === 1 ? 'event' : 'events'} over the limit dropped`,
    );
  }
}
