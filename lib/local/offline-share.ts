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

  constructor(
    private readonly guaranteed: number,
    private readonly depth: number,
  ) {
    this.level = depth;
    this.shareWith(1);
  }

  /** `nodes` is the number of nodes of the app, as of the store's last reply. */
  shareWith(nodes: number): void {
    this.perMicro = (PART * this.guaranteed) / (Math.max(1, nodes) * 1_000_000);
  }

  /** Charges what was admitted in another way. */
  charge(tokens: number, now: number): void {
    this.level = Math.max(0, this.at(now) - tokens);
    this.last = now;
  }

  take(cost: number, now: number): boolean {
    const level = this.at(now);
    if (level < cost) return false;
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
