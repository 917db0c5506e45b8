import { Logger } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { Tally } from '../common/tally.js';
import { type ProtectionFailure } from './unavailable.js';

/**
 * Tells the log what callers are not told: which resource it was. One line a minute for each, since
 * rejections are there to make trouble cheap.
 */
export class TurnedAway {
  private readonly tally: Tally;
  private readonly logger = new Logger('Protection');

  constructor(clock: Pick<Clock, 'now'>) {
    this.tally = new Tally(clock);
  }

  add({ resource, code, message }: ProtectionFailure): void {
    const count = this.tally.add(`${code} ${resource}`);
    if (count === undefined) return;
    const requests = count === 1 ? '1 request' : `${count} requests`;
    this.logger.warn(`${requests} without an answer (${code}), the last one by ${message}`);
  }
}
