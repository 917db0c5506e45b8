import { Injectable } from '@nestjs/common';
import { Callers, IN_TIME_MS, type FatesByTier } from './callers.js';
import { figuresOf, type Figures } from './figures.js';
import { CAPACITY, RENDER_MS, ShopProcess, type ShopReport } from './shop-process.js';

/** Figures are of so many seconds. */
const SPAN = 2;
export const LOADS: readonly string[] = ['0', '0.5', '1', '2', '3'];
const PROFILES = ['normal', 'promo'];

export interface SaleState {
  readonly isLineOn: boolean;
  readonly profile: string;
  readonly load: { readonly wanted: number; readonly now: number };
  readonly capacity: number;
  readonly renderMs: number;
  readonly inTimeMs: number;
  readonly spanSeconds: number;
  readonly byTier: FatesByTier;
  readonly figures: Figures;
  readonly shop: (ShopReport & { readonly heardMsAgo: number }) | undefined;
}

/** A shop with a flash sale, and its callers. */
@Injectable()
export class Sale {
  private isLineOn = true;
  private profile = 'normal';

  constructor(
    private readonly shop: ShopProcess,
    private readonly callers: Callers,
  ) {}

  state(): SaleState {
    const { isLineOn, profile, shop, callers } = this;
    const { byTier, tookMs } = callers.last(SPAN);
    return {
      ...{ isLineOn, profile, byTier, load: callers.load },
      ...{ capacity: CAPACITY, renderMs: RENDER_MS, inTimeMs: IN_TIME_MS, spanSeconds: SPAN },
      figures: figuresOf(byTier, tookMs, SPAN),
      shop: shop.report && { ...shop.report, heardMsAgo: shop.heardMsAgo },
    };
  }

  /** Gives what is wrong with it, if anything is. */
  turn({ line, load, profile, ...others }: Record<string, unknown>): string | undefined {
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) return `there is no switch ${unknown}`;
    if (line !== undefined && line !== 'on' && line !== 'off') return 'line is on or off';
    if (load !== undefined && !isOneOf(LOADS, load)) return `load is ${LOADS.join(', ')}`;
    if (profile !== undefined && !isOneOf(PROFILES, profile)) {
      return `profile is ${PROFILES.join(' or ')}`;
    }
    if (load !== undefined) this.callers.want(Number(load));
    if (line !== undefined) {
      this.isLineOn = line === 'on';
      this.shop.order({ overload: { enabled: this.isLineOn } });
    }
    if (profile !== undefined) {
      this.profile = profile;
      this.shop.order({ profile });
    }
    return undefined;
  }
}

function isOneOf(all: readonly string[], value: unknown): value is string {
  return typeof value === 'string' && all.includes(value);
}
