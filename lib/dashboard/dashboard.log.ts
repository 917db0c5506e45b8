import { Logger } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { quotedError } from '../common/quoted.js';
import { Tally } from '../common/tally.js';

/** Frames that could not be made, and changes from elsewhere: a line a minute of each. */
export class DashboardLog {
  private readonly logger = new Logger('RateLimitDashboard');
  private readonly told: Tally;

  constructor(clock: Pick<Clock, 'now'>) {
    this.told = new Tally(clock);
  }

  readonly frameFailed = (error: unknown): void =>
    this.warn('frame', `A frame of the page could not be made: ${quotedError(error)}`);

  /** Another site may have made a browser send it. */
  foreignChange({ message }: Error): void {
    this.warn('foreign', `A change that may be of another site was refused: ${message}`);
  }

  private warn(kind: string, text: string): void {
    const count = this.told.add(kind);
    if (count === undefined) return;
    this.logger.warn(count === 1 ? text : `${text} (${count} times since the last line)`);
  }
}
