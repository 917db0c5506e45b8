import { type Clock } from '../common/clock.js';

/** A request that the line has refused, and that may have an answer in a cache. */
export interface RefusedRequest {
  /** Looks into the cache, and does nothing else. */
  answer(): void;
  turnAway(): void;
  isGone(): boolean;
}

/** Up to so many are let in however long one of them takes: the mean of few says little. */
const FEW = 4;
const MOST = 1000;
const SMOOTHING = 0.05;

/**
 * Half a slice of each turn for requests that the line has refused: the most useful answer still possible, as
 * long as that takes nothing from those that the line serves.
 *
 * They are gathered for a turn and answered in the next one, an immediate each: Node finishes the microtasks of
 * one before the next, so the clock sees all that an answer takes.
 */
export class HalfSlice {
  private gathered: RefusedRequest[] = [];
  private batch: RefusedRequest[] = [];
  private next = 0;
  /** A request that may have no answer was let in already. */
  private isTrying = false;
  /** When the first of the batch had its turn. */
  private begunAt: number | undefined;
  /** When the one before had its turn, if it was answered. */
  private runAt: number | undefined;
  /** Mean time of an answer. */
  private meanMicros = 0;

  constructor(
    private readonly sliceMicros: () => number,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly soon: (task: () => void) => void,
  ) {}

  /** Room for a request that may have no answer: one a turn, because the attempt is wasted if the cache is empty. */
  get canTry(): boolean {
    return !this.isTrying;
  }

  /** False where no time is left for one more. */
  enter(one: RefusedRequest, mayMiss = false): boolean {
    const before = this.gathered.length;
    if (before >= MOST || (before >= FEW && before * this.meanMicros >= this.micros)) return false;
    this.gathered.push(one);
    this.isTrying ||= mayMiss;
    if (before === 0) this.soon(this.begin);
    return true;
  }

  private get micros(): number {
    return this.sliceMicros() / 2;
  }

  private readonly begin = (): void => {
    this.batch = this.gathered;
    this.gathered = [];
    this.isTrying = false;
    this.next = 0;
    this.begunAt = this.runAt = undefined;
    for (let i = this.batch.length; i > 0; i--) this.soon(this.turn);
  };

  private readonly turn = (): void => {
    const now = this.clock.now();
    this.begunAt ??= now;
    if (this.runAt !== undefined) this.learn(now - this.runAt);
    this.runAt = undefined;
    const one = this.batch[this.next++]!;
    if (one.isGone()) return;
    if (now - this.begunAt >= this.micros) return one.turnAway();
    this.runAt = now;
    one.answer();
  };

  private learn(micros: number): void {
    const took = Math.min(Math.max(micros, 0), this.sliceMicros());
    const mean = this.meanMicros;
    this.meanMicros = mean === 0 ? took : mean + SMOOTHING * (took - mean);
  }
}
