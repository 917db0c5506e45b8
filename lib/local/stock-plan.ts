import { type AppTank } from './app-tank.js';

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

/** The part of a node's cap that apps that are short may ask for in any case. */
const LEFT_TO_SHORT = 0.25;

/** An app that nobody asks for during this time needs no stock, however the stock is chosen. */
const IDLE_MICROS = 5_000_000;

/** How much of each app a node should hold: the one place that knows. */
export class StockPlan {
  /** The most that this node may hold of all apps together, as of the store's last reply. */
  leaseCap = Infinity;

  constructor(
    private readonly settings: StockSettings,
    private readonly tanks: readonly AppTank[],
  ) {}

  target(tank: AppTank, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    if (reserveTarget === 0) return tank.target(horizonMicros, now);
    return this.isAskedFor(tank, now) ? reserveTarget : 0;
  }

  /** Tokens to ask for. */
  want(tank: AppTank, now: number): number {
    return Math.max(0, this.capped(tank, now) - tank.tokens);
  }

  /** See the tank; a fixed stock is kept for any demand. */
  isThin(tank: AppTank, now: number): boolean {
    const { reserveTarget, horizonMicros } = this.settings;
    return reserveTarget === 0 && tank.isThin(horizonMicros, now);
  }

  /** Tokens to give back; a fixed stock is kept, and no more, as long as there is any demand at all. */
  surplus(tank: AppTank, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    if (reserveTarget === 0) return tank.surplus(horizonMicros, now);
    return Math.max(0, tank.tokens - this.target(tank, now));
  }

  private isAskedFor(tank: AppTank, now: number): boolean {
    return !tank.isRetired && now - tank.demand.askedAt < IDLE_MICROS;
  }

  /** The stock at or below which more is asked for. */
  refillLevel(tank: AppTank, now: number): number {
    const { reserveTarget, refillThreshold } = this.settings;
    if (reserveTarget > 0) return Math.floor(reserveTarget * refillThreshold);
    // While there is a shortage the pace decides, and asking at every token would be in vain.
    if (tank.lastShortage !== 'none') return -1;
    return Math.floor(this.capped(tank, now) * REFILL_PART);
  }

  /**
   * The node's cap is for all its apps. Those that have enough come first: their stock must last until
   * the next call, while an app that is short is given what there is and no more. Rounded up, because
   * the store keeps the sum.
   */
  private capped(tank: AppTank, now: number): number {
    const target = this.target(tank, now);
    if (target === 0) return 0;
    const { leaseCap } = this;
    let served = 0;
    let short = 0;
    for (const one of this.tanks) {
      if (one.lastShortage === 'none') served += this.target(one, now);
      else short += this.target(one, now);
    }
    if (served + short <= leaseCap) return target;
    const forShort = Math.max(leaseCap - served, Math.min(short, leaseCap * LEFT_TO_SHORT));
    const [tokens, all] =
      tank.lastShortage === 'none' ? [leaseCap - forShort, served] : [forShort, short];
    return Math.min(target, Math.ceil((tokens * target) / all));
  }

  /** What is spent until it is worth a call of its own: the threshold, or two horizons if more. */
  reportLevel(tank: AppTank, now: number): number {
    const { batchThreshold, horizonMicros } = this.settings;
    return Math.max(batchThreshold, (2 * tank.demand.attack(now) * horizonMicros) / 1_000_000);
  }
}
