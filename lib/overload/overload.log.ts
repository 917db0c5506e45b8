import { Logger } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { describe } from '../common/errors.js';
import { quotedError } from '../common/quoted.js';
import { StateLog } from '../common/state-log.js';
import { Tally } from '../common/tally.js';
import { type TierFault, type TierOption } from './tiers.js';

/** A turn that takes longer is worth a word. */
const LONG_TURN_MS = 1000;

const FAULTS: Readonly<Record<TierFault, (value: unknown) => string>> = {
  throws: (error) => `throws: ${quotedError(error)}`,
  promise: () => 'returns a promise, but has to answer at once',
  type: (value) => `returns ${describe(value)}, which is no name of a tier`,
  name: (value) => `returns ${describe(value)}, which is none of overload.tiers`,
};

/** Begin and end of overload, long turns and odd tiers: a few lines a minute. */
export class OverloadLog {
  private readonly logger = new Logger('Overload');
  private readonly states: StateLog;
  private readonly turns: Tally;
  private readonly told = new Set<string>();

  constructor(clock: Pick<Clock, 'now' | 'every'>) {
    this.states = new StateLog(clock, this.logger);
    this.turns = new Tally(clock);
  }

  standing(intervalMs: number, waiting: number): void {
    this.states.began(
      'standing',
      `The event loop has had no rest for ${intervalMs} ms: requests wait by tier, or are refused with 503 (${waiting} wait now)`,
    );
  }

  rested(waited: number, refused: number): void {
    this.states.over(
      'standing',
      (seconds) =>
        `The event loop has rested again after ${seconds}: ${waited} requests waited, ${refused} were refused`,
    );
  }

  turn(ms: number): void {
    if (ms < LONG_TURN_MS) return;
    if (this.turns.add('turn') === undefined) return;
    this.logger.warn(
      `A turn of the event loop took ${Math.round(ms)} ms: something has blocked it, and nothing can interrupt that`,
    );
  }

  readonly tierFault = (fault: TierFault, value: unknown, of: TierOption = 'tier'): void => {
    const then = of === 'tier' ? 'have the lowest tier' : 'go through the line';
    this.once(`${of} ${fault}`, `${of} ${FAULTS[fault](value)}. Such requests ${then}.`);
  };

  /** Said once in the life of the process. */
  once(name: string, text: string): void {
    if (this.told.has(name)) return;
    this.told.add(name);
    this.logger.warn(text);
  }

  close(): void {
    this.states.close();
  }
}
