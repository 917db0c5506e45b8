import { weightedShares } from '../algorithms/quota/weighted-share.js';
import { type AppTokens } from './app-tokens.js';
import { APP_REFILL_PART } from './lease-figures.js';

export interface StockSettings {
  /** The time that a lease should last. */
  readonly horizonMicros: number;
  /** A fixed stock, refilled at or below a part of it; 0 lets the stock follow demand. */
  readonly reserveTarget: number;
  readonly refillThreshold: number;
  /** Tokens that are spent before they are reported without another reason to call. */
  readonly batchThreshold: number;
}

/** An app without a request for so long needs no stock, however the stock is chosen. */
const IDLE_MICROS = 5_000_000;

/** How much of each app a node should hold. */
export class StockPlan {
  private leaseCap = Infinity;
  /** Tokens that the node may hold of each app, by its place; until demand has moved on. */
  private allotted: readonly number[] | undefined;

  constructor(
    private readonly settings: StockSettings,
    private readonly apps: readonly AppTokens[],
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

  target(app: AppTokens, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    if (reserveTarget === 0) return app.target(horizonMicros, now);
    return this.isInDemand(app, now) ? reserveTarget : 0;
  }

  /** Tokens to want from the store. */
  want(app: AppTokens, now: number): number {
    // No app is allotted more than its target: one that has that much needs no look at the others.
    if (this.target(app, now) <= app.tokens) return 0;
    return Math.max(0, this.capped(app, now) - app.tokens);
  }

  /** As the app has it; a fixed stock is kept for any demand. */
  isThin(app: AppTokens, now: number): boolean {
    const { reserveTarget, horizonMicros } = this.settings;
    return reserveTarget === 0 && app.isThin(horizonMicros, now);
  }

  /** Tokens to give back; a fixed stock is kept, and no more, as long as there is any demand at all. */
  surplus(app: AppTokens, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    if (reserveTarget === 0) return app.surplus(horizonMicros, now);
    return Math.max(0, app.tokens - this.target(app, now));
  }

  private isInDemand(app: AppTokens, now: number): boolean {
    return !app.isRetired && now - app.demand.lastAt < IDLE_MICROS;
  }

  /** The stock at or below which it is refilled. */
  refillLevel(app: AppTokens, now: number): number {
    const { reserveTarget, refillThreshold } = this.settings;
    if (reserveTarget > 0) return Math.floor(reserveTarget * refillThreshold);
    // While there is a shortage the pace decides, and a call at every token would be in vain.
    if (app.lastShortage !== 'none') return -1;
    return Math.floor(this.capped(app, now) * APP_REFILL_PART);
  }

  /** The target, or the app's part of the cap. */
  private capped(app: AppTokens, now: number): number {
    this.allotted ??= this.allot(now);
    return this.allotted[app.index] ?? 0;
  }

  /**
   * The node's cap is for all its apps. A cap below the sum of their targets is shared by the use of each:
   * that is enough for all, because all use together fits into the cap. Each app gets the whole requests of
   * its share; the tokens left over go, a request each, to the apps that lack the largest part of one. Parts of
   * requests would lie idle with many small apps, and be missed where they are used.
   */
  private allot(now: number): number[] {
    const { leaseCap, apps } = this;
    const { horizonMicros } = this.settings;
    const targets = apps.map((app) => this.target(app, now));
    if (targets.reduce((sum, target) => sum + target, 0) <= leaseCap) return targets;
    const claims = apps.map((app, i) => {
      const weight = targets[i] === 0 ? 0 : app.use(horizonMicros, now);
      return { demand: weight > 0 ? targets[i]! : 0, guaranteed: 0, burst: Infinity, weight };
    });
    const shares = weightedShares(claims, leaseCap);
    const whole = shares.map((share, i) => {
      const { cost } = apps[i]!.demand;
      return cost > 0 ? Math.floor(Math.floor(share / cost) * cost) : 0;
    });
    let left = leaseCap - whole.reduce((sum, tokens) => sum + tokens, 0);
    const missing = (i: number): number => (shares[i]! - whole[i]!) / apps[i]!.demand.cost;
    const places = [...shares.keys()].filter((i) => whole[i]! < shares[i]!);
    for (const i of places.sort((a, b) => missing(b) - missing(a))) {
      const more = Math.ceil(apps[i]!.demand.cost);
      if (more > left) break;
      whole[i]! += more;
      left -= more;
    }
    return whole;
  }

  /** Tokens spent until a report is worth a call of its own: the threshold, or two horizons if more. */
  reportLevel(app: AppTokens, now: number): number {
    const { batchThreshold, horizonMicros } = this.settings;
    return Math.max(batchThreshold, (2 * app.demand.risingRate(now) * horizonMicros) / 1_000_000);
  }
}
