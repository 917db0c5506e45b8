import { weightedShares } from '../algorithms/quota/weighted-share.js';
import { type AppTokens } from './app-tokens.js';

export interface StockSettings {
  /** For how long a lease should last. */
  readonly horizonMicros: number;
  /** A fixed stock, refilled at or below a part of it; 0 lets the stock follow demand. */
  readonly reserveTarget: number;
  readonly refillThreshold: number;
  /** Tokens that are spent before they are reported without another reason to call. */
  readonly batchThreshold: number;
}

/** A lease of 1.5 horizons that is refilled here lasts one horizon between calls, and a little more. */
const REFILL_PART = 0.3;

/** An app that nobody asks for during this time needs no stock, however the stock is chosen. */
const IDLE_MICROS = 5_000_000;

/** How much of each app a node should hold: the one place that knows. */
export class StockPlan {
  private leaseCap = Infinity;
  /** What the node may hold of each app, by the place of its tank; until demand has moved on. */
  private allotted: readonly number[] | undefined;

  constructor(
    private readonly settings: StockSettings,
    private readonly tanks: readonly AppTokens[],
  ) {}

  /** A reply has come: the most that this node may hold of all apps together is this. */
  capAt(leaseCap: number): void {
    this.leaseCap = leaseCap;
    this.renew();
  }

  /** Requests have come since the apps were looked at last. */
  renew(): void {
    this.allotted = undefined;
  }

  target(tank: AppTokens, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    if (reserveTarget === 0) return tank.target(horizonMicros, now);
    return this.isAskedFor(tank, now) ? reserveTarget : 0;
  }

  /** Tokens to ask for. */
  want(tank: AppTokens, now: number): number {
    // No app is allotted more than its target: one that has that much needs no look at the others.
    if (this.target(tank, now) <= tank.tokens) return 0;
    return Math.max(0, this.capped(tank, now) - tank.tokens);
  }

  /** See the tank; a fixed stock is kept for any demand. */
  isThin(tank: AppTokens, now: number): boolean {
    const { reserveTarget, horizonMicros } = this.settings;
    return reserveTarget === 0 && tank.isThin(horizonMicros, now);
  }

  /** Tokens to give back; a fixed stock is kept, and no more, as long as there is any demand at all. */
  surplus(tank: AppTokens, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    if (reserveTarget === 0) return tank.surplus(horizonMicros, now);
    return Math.max(0, tank.tokens - this.target(tank, now));
  }

  private isAskedFor(tank: AppTokens, now: number): boolean {
    return !tank.isRetired && now - tank.demand.askedAt < IDLE_MICROS;
  }

  /** The stock at or below which more is asked for. */
  refillLevel(tank: AppTokens, now: number): number {
    const { reserveTarget, refillThreshold } = this.settings;
    if (reserveTarget > 0) return Math.floor(reserveTarget * refillThreshold);
    // While there is a shortage the pace decides, and asking at every token would be in vain.
    if (tank.lastShortage !== 'none') return -1;
    return Math.floor(this.capped(tank, now) * REFILL_PART);
  }

  /** The target, or the app's part of the cap. */
  private capped(tank: AppTokens, now: number): number {
    this.allotted ??= this.allot(now);
    return this.allotted[tank.index] ?? 0;
  }

  /**
   * The node's cap is for all its apps. Where it is less than they would like to have, it is shared by
   * what each of them uses: then it is enough for all, because what is used fits into the cap. Where
   * that is less than a request, the last requests go to those who miss most of one; a token for each of
   * many small apps would lie idle, and be missed where it is used.
   */
  private allot(now: number): number[] {
    const { leaseCap, tanks } = this;
    const { horizonMicros } = this.settings;
    const targets = tanks.map((tank) => this.target(tank, now));
    if (targets.reduce((sum, target) => sum + target, 0) <= leaseCap) return targets;
    const claims = tanks.map((tank, i) => {
      const weight = targets[i] === 0 ? 0 : tank.use(horizonMicros, now);
      return { demand: weight > 0 ? targets[i]! : 0, guaranteed: 0, burst: Infinity, weight };
    });
    const shares = weightedShares(claims, leaseCap);
    const whole = shares.map((share, i) => {
      const { cost } = tanks[i]!.demand;
      return cost > 0 ? Math.floor(Math.floor(share / cost) * cost) : 0;
    });
    let left = leaseCap - whole.reduce((sum, tokens) => sum + tokens, 0);
    const missing = (i: number): number => (shares[i]! - whole[i]!) / tanks[i]!.demand.cost;
    const places = [...shares.keys()].filter((i) => whole[i]! < shares[i]!);
    for (const i of places.sort((a, b) => missing(b) - missing(a))) {
      const more = Math.ceil(tanks[i]!.demand.cost);
      if (more > left) break;
      whole[i]! += more;
      left -= more;
    }
    return whole;
  }

  /** What is spent until it is worth a call of its own: the threshold, or two horizons if more. */
  reportLevel(tank: AppTokens, now: number): number {
    const { batchThreshold, horizonMicros } = this.settings;
    return Math.max(batchThreshold, (2 * tank.demand.attack(now) * horizonMicros) / 1_000_000);
  }
}
