/**
 * A bucket of `rate` tokens per second that holds up to `depth`, is full at first, and sees every
 * request at once. Kept apart from the library's own arithmetic on purpose: it is what that is
 * measured against.
 */
export class IdealBucket {
  private level: number;
  private last = 0;

  constructor(
    private readonly rate: number,
    private readonly depth: number,
  ) {
    this.level = depth;
  }

  take(cost: number, second: number): boolean {
    this.level = Math.min(this.depth, this.level + (second - this.last) * this.rate);
    this.last = second;
    if (this.level < cost) return false;
    this.level -= cost;
    return true;
  }
}
