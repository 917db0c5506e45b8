/** The part of an app's guarantee that its nodes share while the store is away. */
const PART = 0.9;

/**
 * What a node may admit while the store is away: its part of the guarantee, as a bucket that holds
 * no more than the largest request. It is charged all the time, so that a switch frees no burst.
 */
export class OfflineShare {
  private level = 0;
  private last = 0;
  private perMicro = 0;
  private nodes = 1;

  constructor(
    private guaranteed: number,
    private depth: number,
  ) {
    this.level = depth;
    this.shareWith(1);
  }

  /** `nodes` is the number of nodes of the app, as of the store's last reply. */
  shareWith(nodes: number): void {
    this.nodes = Math.max(1, nodes);
    this.perMicro = (PART * this.guaranteed) / (this.nodes * 1_000_000);
  }

  /** Other figures: what is lower holds from now on, what is higher only once the store has it. */
  lowerTo(guaranteed: number, depth: number, now: number): void {
    this.change(Math.min(guaranteed, this.guaranteed), Math.min(depth, this.depth), now);
  }

  /** Other figures, of which what flowed in so far knows nothing. */
  change(guaranteed: number, depth: number, now: number): void {
    this.charge(0, now);
    this.guaranteed = guaranteed;
    this.depth = depth;
    this.shareWith(this.nodes);
  }

  /** Charges what was admitted in another way. */
  charge(tokens: number, now: number): void {
    this.level = Math.max(0, this.at(now) - tokens);
    this.last = now;
  }

  take(cost: number, now: number): boolean {
    const level = this.at(now);
    if (!(level >= cost)) return false;
    this.level = level - cost;
    this.last = now;
    return true;
  }

  /** How long until `cost` is there; infinite if it never is. */
  waitMicros(cost: number, now: number): number {
    if (cost > this.depth || this.perMicro === 0) return Infinity;
    return Math.max(0, Math.ceil((cost - this.at(now)) / this.perMicro));
  }

  private at(now: number): number {
    return Math.min(this.depth, this.level + Math.max(0, now - this.last) * this.perMicro);
  }
}
