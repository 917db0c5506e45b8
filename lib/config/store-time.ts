import { type Clock } from '../common/clock.js';

/** After so long a better measurement is no better: clocks drift, and servers change. */
const TRUSTED_MICROS = 60_000_000;

/**
 * The store's clock, estimated from its answers: it was read somewhere between request and answer, so
 * the quickest answer is the most exact.
 */
export class StoreTime {
  private atMicros = -Infinity;
  private storeMs = 0;
  private roundTrip = Infinity;

  constructor(private readonly clock: Pick<Clock, 'now' | 'epochMs'>) {}

  observe(sentMicros: number, storeMs: number): void {
    const received = this.clock.now();
    const roundTrip = received - sentMicros;
    const middle = (sentMicros + received) / 2;
    const isOld = received - this.atMicros > TRUSTED_MICROS;
    const hasMoved = Math.abs(storeMs - this.at(middle)) * 1000 > roundTrip + this.roundTrip + 1000;
    if (roundTrip > this.roundTrip && !isOld && !hasMoved) return;
    this.atMicros = middle;
    this.storeMs = storeMs;
    this.roundTrip = roundTrip;
  }

  nowMs(): number {
    return this.at(this.clock.now());
  }

  /** Before the first answer the own clock is the best guess. */
  private at(micros: number): number {
    if (this.atMicros === -Infinity) return this.clock.epochMs(micros);
    return this.storeMs + (micros - this.atMicros) / 1000;
  }
}
