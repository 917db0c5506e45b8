/** Failures in a row, without doubt that they are failures, after which there is no use in asking on. */
const FAILURES_TO_PAUSE = 3;

/**
 * How a store that does not answer is left alone: after three failures in a row, for a pause that is
 * twice as long each time, up to a bound. Units of time are those of the caller.
 */
export class RetryPause {
  /** The length of the next pause. */
  length: number;
  private failures = 0;
  private countedAt = -Infinity;

  constructor(
    private readonly first: number,
    private readonly longest: number,
  ) {
    this.length = first;
  }

  /** Enough failures have come in a row. */
  get isDue(): boolean {
    return this.failures >= FAILURES_TO_PAUSE;
  }

  /**
   * Counts a failure; true if enough have come in a row. Of calls that were under way at the same time
   * only the first failure counts: one hiccup, one mark.
   */
  failed(now: number, begunAt = now): boolean {
    if (begunAt < this.countedAt) return false;
    this.countedAt = now;
    this.failures++;
    return this.isDue;
  }

  /** The length of the pause that begins now; the one after it is longer. */
  begin(): number {
    const { length } = this;
    this.length = Math.min(length * 2, this.longest);
    return length;
  }

  /** The store may be back: pauses begin short again. */
  shorten(): void {
    this.length = this.first;
  }

  /** A probe was answered. The next call decides whether pauses begin short again. */
  forgive(): void {
    this.failures = 0;
  }

  /** A call was answered. */
  succeeded(): void {
    this.forgive();
    this.shorten();
  }
}
