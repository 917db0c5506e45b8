import { storeFillMicrosOf, type QuotaLimits } from '../algorithms/quota/quota-limits.js';

/** The part of an app's guarantee that its nodes share while the store is away. */
export const OFFLINE_PART = 0.9;

/** How long an empty share takes to fill, which is its depth: as long as the store's bucket. */
export function shareFillMicrosOf(limits: QuotaLimits): number {
  return storeFillMicrosOf(limits);
}

/** The figures of an offline share. */
export interface ShareSettings {
  /** Tokens per second, of all nodes together. */
  readonly guaranteed: number;
  /** The most that a request may cost: a share holds at least that. */
  readonly maxCost: number;
  /** The depth: a share holds the tokens of so long. */
  readonly fillMicros: number;
}

/**
 * The tokens that a node may admit while the store is away: its part of the guarantee, as a bucket that is as
 * deep for its rate as the cluster's is, so that requests which come together pass as they do
 * otherwise. It is charged all the time, so that a switch frees no burst.
 */
export class OfflineShare {
  private level = Infinity;
  private last = 0;
  private perMicro = 0;
  private depth = 0;

  constructor(
    private settings: ShareSettings,
    /** Nodes that may serve the app. */
    private nodes = 1,
  ) {
    this.resize();
  }

  /** Another number of nodes; tokens that flowed in so far came under the old one. */
  shareWith(nodes: number, now: number): void {
    if (nodes === this.nodes) return;
    this.charge(0, now);
    this.nodes = nodes;
    this.resize();
  }

  /** Lower figures hold from now on, higher ones only once the store has them. */
  lowerTo({ guaranteed, maxCost, fillMicros }: ShareSettings, now: number): void {
    const { settings } = this;
    this.change(
      {
        guaranteed: Math.min(guaranteed, settings.guaranteed),
        maxCost: Math.min(maxCost, settings.maxCost),
        fillMicros: Math.min(fillMicros, settings.fillMicros),
      },
      now,
    );
  }

  /** Other figures; tokens that flowed in so far came under the old ones. */
  change(settings: ShareSettings, now: number): void {
    this.charge(0, now);
    this.settings = settings;
    this.resize();
  }

  /** Charges tokens that were admitted in another way. */
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

  /** Takes tokens back that were taken and not used. */
  putBack(cost: number, now: number): void {
    this.level = Math.min(this.depth, this.at(now) + cost);
    this.last = now;
  }

  /** Whole tokens that the share has less than when it is full. */
  missing(now: number): number {
    return Math.ceil(this.depth - this.at(now));
  }

  /** How long until `cost` is there; infinite if it never is. */
  waitMicros(cost: number, now: number): number {
    if (cost > this.depth || this.perMicro === 0) return Infinity;
    return Math.max(0, Math.ceil((cost - this.at(now)) / this.perMicro));
  }

  /** A share that became smaller holds no more than it may; one that became larger has yet to fill. */
  private resize(): void {
    const { guaranteed, maxCost, fillMicros } = this.settings;
    const perSecond = (OFFLINE_PART * guaranteed) / Math.max(1, this.nodes);
    this.perMicro = perSecond / 1_000_000;
    this.depth = Math.max(maxCost, (perSecond * fillMicros) / 1_000_000);
    this.level = Math.min(this.level, this.depth);
  }

  private at(now: number): number {
    return Math.min(this.depth, this.level + Math.max(0, now - this.last) * this.perMicro);
  }
}
