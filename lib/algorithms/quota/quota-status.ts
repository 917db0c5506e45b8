import { type ConsumptionTotal } from './consumption.js';
import { isRetired, UNITS_PER_TOKEN, type AppLimits, type QuotaLimits } from './quota-limits.js';
import { sharePerSecond } from './quota-refill.js';
import { type LedgerAppState, type LedgerState } from './quota-state.js';

/** An app's quota as it stands. Amounts are tokens, rates are tokens per second. */
export interface AppStatus {
  readonly guaranteed: number;
  readonly burst: number;
  /**
   * Granted and used, ever; what is granted but not used is leased, or was lost with its lease. What
   * passed while answers were late, and was not granted, is used all the same.
   */
  readonly granted: number;
  readonly used: number;
  /** Leased to nodes, and not yet reported as used or given back. */
  readonly outstanding: number;
  /** Tokens in the app's guaranteed bucket. */
  readonly stock: number;
  readonly credit: number;
  /** Offered: admitted and denied. */
  readonly demand: number;
  /** Nodes that called for this app within one lease time. */
  readonly nodes: number;
  /** During overload: what it may have beyond the guarantee. Else 0. */
  readonly share: number;
  /** As the nodes report it, by method where requests named one. */
  readonly consumption: {
    readonly cost: number;
    readonly count: number;
    readonly byMethod: Readonly<Record<string, { readonly cost: number; readonly count: number }>>;
  };
}

/** The cluster's quota as it stood when the last call was settled. */
export interface QuotaStatus {
  /** That instant, on the store's clock; 0 if there was no call yet. */
  readonly asOfMs: number;
  readonly epoch: number;
  /** Of the limits; 0 if they are those that the code has. */
  readonly revision: number;
  /** Tokens per second; 0 where there is no cluster level. */
  readonly capacity: number;
  /** Tokens that may be taken at once. */
  readonly depth: number;
  /** Tokens that are there now. */
  readonly level: number;
  readonly outstanding: number;
  readonly used: number;
  readonly demand: number;
  readonly nodes: number;
  readonly overloaded: boolean;
  /** Those with limits, and those that had some as long as tokens of theirs are leased. */
  readonly apps: Readonly<Record<string, AppStatus>>;
}

/** The limits and the state of a ledger. */
export interface LedgerView {
  readonly limits: QuotaLimits;
  readonly state: Omit<LedgerState, 'leases'> & { readonly leases: { readonly size: number } };
  readonly consumption: ReadonlyMap<number, ConsumptionTotal>;
}

export function statusOf({ limits, state, consumption }: LedgerView): QuotaStatus {
  const { cluster } = state;
  const sum = (of: (app: LedgerAppState) => number): number =>
    state.apps.reduce((total, app) => total + of(app), 0);
  return {
    asOfMs: Math.floor((cluster.lastMicros - cluster.offsetMicros) / 1000),
    epoch: cluster.epoch,
    revision: limits.revision,
    capacity: limits.capacity,
    depth: tokens(limits.depth),
    level: tokens(Math.max(0, cluster.level)),
    outstanding: tokens(cluster.outstanding),
    used: sum((app) => app.used),
    demand: sum((app) => app.demand),
    nodes: state.leases.size,
    overloaded: cluster.overloaded,
    apps: Object.fromEntries(
      limits.apps.flatMap((app, index) => {
        const own = state.apps[index]!;
        if (isRetired(app) && own.outstanding === 0) return [];
        const share = sharePerSecond(state, index);
        return [[app.app, appStatus(app, own, share, consumption.get(index))]];
      }),
    ),
  };
}

function appStatus(
  { guaranteed, burst }: AppLimits,
  own: LedgerAppState,
  share: number,
  total: ConsumptionTotal | undefined,
): AppStatus {
  return {
    guaranteed,
    burst,
    granted: own.granted,
    used: own.used,
    outstanding: tokens(own.outstanding),
    stock: tokens(Math.max(0, own.stock)),
    credit: tokens(own.credit),
    demand: own.demand,
    nodes: own.nodes,
    share,
    consumption: {
      cost: total?.cost ?? 0,
      count: total?.count ?? 0,
      byMethod: Object.fromEntries(total?.methods ?? []),
    },
  };
}

function tokens(units: number): number {
  return Math.floor(units / UNITS_PER_TOKEN);
}
