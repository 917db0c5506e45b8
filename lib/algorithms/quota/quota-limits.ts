/** The figures of the resource that all apps share. */
export interface ClusterFigures {
  /** Tokens per second. */
  readonly capacity: number;
  readonly burstRatio: number;
  readonly reservedRatio: number;
}

/** The figures of one app's share. */
export interface AppFigures {
  readonly app: string;
  /** Tokens per second that are always there. */
  readonly guaranteed: number;
  /** Tokens per second that are never exceeded. */
  readonly burst: number;
  readonly burstDurationMs: number;
  /** 0 is served first. */
  readonly priority: number;
  /** Idle capacity may be borrowed without spending burst credit. */
  readonly elastic: boolean;
}

export interface QuotaFigures {
  readonly cluster: ClusterFigures | undefined;
  readonly apps: readonly AppFigures[];
  /** The most that one request may cost. */
  readonly maxCost: number;
  readonly paceMs: number;
  readonly leaseTtlMs: number;
  /** Tokens that a node may always keep in stock; 0 leaves it to the number of nodes. */
  readonly reserveTarget: number;
}

/** Levels are counted in millionths of a token, so that rates per second are rates per microsecond. */
export const UNITS_PER_TOKEN = 1_000_000;

/** Shared by weight when there is not enough for all, from priority 0 on. */
const WEIGHTS = [8, 4, 2, 1];
/** How much of the cluster's stock is kept from whom, as multiples of the reserved ratio. */
const RESERVES = [0, 1, 2.5, 4.5];

/** An app's figures as the settlement uses them. Rates are units per microsecond. */
export interface AppLimits {
  readonly app: string;
  readonly guaranteed: number;
  readonly burst: number;
  readonly weight: number;
  readonly elastic: boolean;
  /** Units that the guaranteed bucket holds. */
  readonly stockDepth: number;
  /** Units beyond the guaranteed bucket. */
  readonly creditDepth: number;
  readonly creditMicros: number;
  readonly ceilingDepth: number;
  /** Stock of the cluster that is not lent to this app. */
  readonly reserve: number;
}

export interface QuotaLimits {
  /** Capacity in units per microsecond; 0 where there is no cluster level. */
  readonly capacity: number;
  /** Units that the cluster bucket holds; 0 where there is none. */
  readonly depth: number;
  /** The same for one lease time after a loss of state. */
  readonly learningDepth: number;
  readonly apps: readonly AppLimits[];
  readonly maxCostUnits: number;
  readonly leaseTtlMicros: number;
  readonly paceMicros: number;
  readonly reserveTarget: number;
  /** Tokens of which half may be leased: the cluster's depth, or all that the apps hold. */
  readonly leaseBudget: number;
}

export function compileQuota(figures: QuotaFigures): QuotaLimits {
  const { cluster, apps, maxCost, paceMs } = figures;
  const depth = cluster === undefined ? Infinity : clusterDepth(cluster, maxCost, paceMs);
  const capacity = cluster?.capacity ?? 0;
  const ceilings = apps.reduce((sum, { burst }) => sum + Math.max(burst, maxCost), 0);
  return {
    capacity,
    depth: toUnits(cluster === undefined ? 0 : depth),
    learningDepth: toUnits(Math.max(Math.ceil((capacity * paceMs) / 1000), maxCost)),
    apps: apps.map((app) => compileApp(app, cluster, depth, maxCost)),
    maxCostUnits: toUnits(maxCost),
    leaseTtlMicros: figures.leaseTtlMs * 1000,
    paceMicros: paceMs * 1000,
    reserveTarget: figures.reserveTarget,
    leaseBudget: cluster === undefined ? ceilings : depth,
  };
}

/** Tokens that may be taken at once: the burst asked for, and enough for the protocol to work in. */
export function clusterDepth(cluster: ClusterFigures, maxCost: number, paceMs: number): number {
  const { capacity, burstRatio } = cluster;
  const burst = Math.round(capacity * (burstRatio - 1));
  const paced = Math.ceil((2.5 * capacity * paceMs) / 1000);
  return Math.max(burst, paced, Math.min(capacity, 100), maxCost);
}

/** Tokens that an app's guaranteed bucket holds. */
export function stockDepth(
  guaranteed: number,
  cluster: ClusterFigures | undefined,
  depth: number,
  maxCost: number,
): number {
  if (cluster === undefined) return Math.max(guaranteed, maxCost);
  return Math.max(Math.ceil((guaranteed * depth) / (2 * cluster.capacity)), maxCost);
}

function compileApp(
  figures: AppFigures,
  cluster: ClusterFigures | undefined,
  depth: number,
  maxCost: number,
): AppLimits {
  const { guaranteed, burst, priority } = figures;
  const reserved = (cluster?.reservedRatio ?? 0) * RESERVES[priority]!;
  return {
    app: figures.app,
    guaranteed,
    burst,
    weight: WEIGHTS[priority]!,
    elastic: figures.elastic && cluster !== undefined,
    stockDepth: toUnits(stockDepth(guaranteed, cluster, depth, maxCost)),
    creditDepth: toUnits(burst - guaranteed),
    creditMicros: figures.burstDurationMs * 1000,
    ceilingDepth: toUnits(Math.max(burst, maxCost)),
    reserve: cluster === undefined ? 0 : toUnits(Math.floor(reserved * depth)),
  };
}

function toUnits(tokens: number): number {
  return tokens * UNITS_PER_TOKEN;
}
