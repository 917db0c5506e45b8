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
const LOWEST_PRIORITY = 3;

/** The weight of a priority; where none is given, of the lowest. */
export const quotaWeight = (priority = LOWEST_PRIORITY): number => WEIGHTS[priority]!;

/** Which part of the cluster's free stock is kept from whom, as multiples of the reserved ratio. */
const RESERVES = [0, 1, 2.5, 4.5];

/** One pace, its jitter of up to a fifth, and the way to the store. */
const PACES_BETWEEN_CALLS = 1.25;

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
  /** The part of what the cluster has beside leases and guarantees that is not lent to this app. */
  readonly reserved: number;
}

export interface QuotaLimits {
  /** Of the configuration that they come from; 0 is what the code says. */
  readonly revision: number;
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
  /** Tokens of which half may be leased at once, to all nodes together. */
  readonly leaseBudget: number;
}

/** `numbering` has all apps that were ever known by their numbers; those without figures are retired. */
export function compileQuota(
  figures: QuotaFigures,
  numbering?: readonly string[],
  revision = 0,
): QuotaLimits {
  const { cluster, apps, maxCost, paceMs } = figures;
  const depth = cluster === undefined ? Infinity : clusterDepth(cluster, maxCost, paceMs);
  const capacity = cluster?.capacity ?? 0;
  const active = apps.map((app) => compileApp(app, figures, depth));
  const compiled = numbering?.map(
    (name) => active.find(({ app }) => app === name) ?? retired(name),
  );
  return {
    revision,
    capacity,
    depth: toUnits(cluster === undefined ? 0 : depth),
    learningDepth: toUnits(Math.max(Math.ceil((capacity * paceMs) / 1000), maxCost)),
    apps: compiled ?? active,
    maxCostUnits: toUnits(maxCost),
    leaseTtlMicros: figures.leaseTtlMs * 1000,
    paceMicros: paceMs * 1000,
    reserveTarget: figures.reserveTarget,
    leaseBudget: leaseBudget(active, depth),
  };
}

/** How long the cluster's bucket takes to fill; where there is none, a second, by which ceilings of apps are whole again. */
export function storeFillMicrosOf({ capacity, depth }: QuotaLimits): number {
  return capacity === 0 ? 1_000_000 : depth / capacity;
}

/**
 * The cluster's depth, but no more than leaves room for every guaranteed bucket beside the half that
 * is leased: its level is then never below their sum, and nobody's leases starve a guarantee.
 */
function leaseBudget(apps: readonly AppLimits[], depth: number): number {
  const sum = (of: (app: AppLimits) => number): number =>
    apps.reduce((total, app) => total + of(app) / UNITS_PER_TOKEN, 0);
  if (depth === Infinity) return sum((app) => app.ceilingDepth);
  const besideStock = 2 * Math.floor(depth - sum((app) => app.stockDepth));
  return Math.max(0, Math.min(depth, besideStock));
}

/** Tokens that may be taken at once: the burst asked for, and enough for the protocol to work in. */
export function clusterDepth(cluster: ClusterFigures, maxCost: number, paceMs: number): number {
  const { capacity, burstRatio } = cluster;
  const burst = Math.round(capacity * (burstRatio - 1));
  const paced = Math.ceil((2 * PACES_BETWEEN_CALLS * capacity * paceMs) / 1000);
  return Math.max(burst, paced, Math.min(capacity, 100), maxCost);
}

/**
 * Tokens that an app's guaranteed bucket holds: at least the most that a request may cost and what
 * flows in until the next call, or the guarantee would overflow while a request waits to be covered.
 */
export function stockDepth(
  guaranteed: number,
  cluster: ClusterFigures | undefined,
  depth: number,
  maxCost: number,
  paceMs: number,
): number {
  const least = maxCost + (PACES_BETWEEN_CALLS * guaranteed * paceMs) / 1000;
  if (cluster === undefined) return Math.max(guaranteed, least);
  return Math.max(Math.ceil((guaranteed * depth) / (2 * cluster.capacity)), least);
}

function compileApp(
  figures: AppFigures,
  { cluster, maxCost, paceMs }: QuotaFigures,
  depth: number,
): AppLimits {
  const { guaranteed, burst, priority } = figures;
  return {
    app: figures.app,
    guaranteed,
    burst,
    weight: quotaWeight(priority),
    elastic: figures.elastic && cluster !== undefined,
    stockDepth: toUnits(stockDepth(guaranteed, cluster, depth, maxCost, paceMs)),
    creditDepth: toUnits(burst - guaranteed),
    creditMicros: figures.burstDurationMs * 1000,
    ceilingDepth: toUnits(Math.max(burst, maxCost)),
    reserved: RESERVES[priority]! * (cluster?.reservedRatio ?? 0),
  };
}

/** An app that is gone: what was leased of it is settled as ever, and nothing more is granted. */
function retired(app: string): AppLimits {
  return {
    app,
    guaranteed: 0,
    burst: 0,
    weight: WEIGHTS.at(-1)!,
    elastic: true,
    stockDepth: 0,
    creditDepth: 0,
    creditMicros: 0,
    ceilingDepth: 0,
    reserved: 0,
  };
}

export function isRetired({ ceilingDepth }: AppLimits): boolean {
  return ceilingDepth === 0;
}

function toUnits(tokens: number): number {
  return Math.round(tokens * UNITS_PER_TOKEN);
}

/**
 * Calls name apps by number, so a number never goes to another app: those that are known keep theirs,
 * new ones come after them, and those that are gone leave their place empty until they are back.
 */
export function numbered(known: readonly string[], apps: readonly string[]): readonly string[] {
  const added = apps.filter((app) => !known.includes(app));
  return added.length === 0 ? known : [...known, ...added];
}
