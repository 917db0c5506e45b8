import { type QuotaLimits } from './quota-limits.js';
import { newAppState, type LedgerState } from './quota-state.js';
import { weightedShares } from './weighted-share.js';

/** Overload begins above the first and ends below the second, as parts of the capacity. */
const OVERLOAD_BEGINS = 0.9;
const OVERLOAD_ENDS = 0.85;
const TICK_MS = 100;
const MICROS_PER_MS = 1000;
export const TICK_MICROS = TICK_MS * MICROS_PER_MS;

/**
 * Lets tokens flow in up to `now`. A bucket fills only to what its depth leaves beside the tokens
 * that are leased out of it, which is what makes its bound hold for any number of nodes.
 */
export function refill(limits: QuotaLimits, state: LedgerState, now: number): void {
  const { cluster } = state;
  const elapsed = now - cluster.lastMicros;
  cluster.lastMicros = now;
  if (limits.capacity > 0) {
    const depth = now < cluster.learningUntil ? limits.learningDepth : limits.depth;
    cluster.level = filled(cluster.level, limits.capacity * elapsed, depth - cluster.outstanding);
  }
  for (const [index, own] of state.apps.entries()) {
    const app = limits.apps[index]!;
    own.stock = filled(own.stock, app.guaranteed * elapsed, app.stockDepth);
    own.room = filled(own.room, app.burst * elapsed, app.ceilingDepth - own.outstanding);
    if (own.creditSince > 0 && now - own.creditSince >= app.creditMicros) {
      own.credit = app.creditDepth;
      own.creditSince = 0;
    }
    if (cluster.overloaded) {
      const inflow = Math.floor((own.shareRate * elapsed) / MICROS_PER_MS);
      own.share = filled(own.share, inflow, shareDepth(limits, own.shareRate));
    }
  }
}

/**
 * Keeps every bucket as full as it was, beside what is leased out of it. Apps that are new begin as
 * they would with the cluster; one that is back has to earn what it once had.
 */
export function rescale(from: QuotaLimits, to: QuotaLimits, state: LedgerState, now: number): void {
  const { cluster } = state;
  cluster.level = scaled(cluster.level, from.depth, to.depth);
  // Without a capacity nothing is above it.
  if (to.capacity === 0) cluster.overloaded = false;
  for (const [index, own] of state.apps.entries()) {
    const [was, is] = [from.apps[index]!, to.apps[index]!];
    own.stock = scaled(own.stock, was.stockDepth, is.stockDepth);
    own.room = scaled(own.room, was.ceilingDepth, is.ceilingDepth);
    own.credit = scaled(own.credit, was.creditDepth, is.creditDepth);
    // Credit that there was none of before has yet to be earned.
    if (own.credit < is.creditDepth && own.creditSince === 0) own.creditSince = now;
  }
  const isLearning = now < cluster.learningUntil;
  for (const app of to.apps.slice(from.apps.length)) {
    state.apps.push(newAppState(app, now, isLearning));
  }
  refill(to, state, now);
}

/** Products are beyond 2^53, so a full bucket or a full debt may come out a unit beyond its depth. */
function scaled(level: number, from: number, to: number): number {
  return from === 0 ? 0 : Math.max(0 - to, Math.min(to, Math.floor((level * to) / from)));
}

/** The rate of an app beyond its guarantee during overload, in tokens per second. */
export function sharePerSecond(
  { cluster, apps }: Pick<LedgerState, 'cluster' | 'apps'>,
  index: number,
): number {
  return cluster.overloaded ? Math.floor(apps[index]!.shareRate / MICROS_PER_MS) : 0;
}

/** All that an app may have during overload, in tokens per second; unbounded outside of it. */
export function rateDuringOverload(
  { cluster, apps }: Pick<LedgerState, 'cluster' | 'apps'>,
  index: number,
  guaranteed: number,
): number {
  const { demand, shareRate } = apps[index]!;
  return cluster.overloaded ? Math.min(demand, guaranteed) + shareRate / MICROS_PER_MS : Infinity;
}

function filled(level: number, inflow: number, depth: number): number {
  return Math.min(level + inflow, Math.max(0, depth));
}

/** Two ticks' worth, and up to four where the cluster is so deep that leases last longer than half a tick. */
function shareDepth({ depth, capacity, maxCostUnits }: QuotaLimits, rate: number): number {
  const fillMs = Math.floor(depth / capacity / MICROS_PER_MS);
  return Math.max(Math.min(4 * TICK_MS, Math.max(2 * TICK_MS, fillMs)) * rate, maxCostUnits);
}

/** Once per tick: is there overload, and if so, what is everybody's share of the capacity? */
export function overloadTick(limits: QuotaLimits, state: LedgerState, now: number): void {
  const { cluster } = state;
  if (limits.capacity === 0 || now - cluster.tickMicros < TICK_MICROS) return;
  cluster.tickMicros = now;
  const demand = state.apps.reduce((sum, own) => sum + own.demand, 0);
  const threshold = cluster.overloaded ? OVERLOAD_ENDS : OVERLOAD_BEGINS;
  const wasOverloaded = cluster.overloaded;
  cluster.overloaded = wasOverloaded
    ? demand >= threshold * limits.capacity
    : demand > threshold * limits.capacity;
  if (!cluster.overloaded) return;
  const claims = limits.apps.map((app, index) => ({
    demand: state.apps[index]!.demand,
    guaranteed: app.guaranteed,
    burst: app.burst,
    weight: app.weight,
  }));
  for (const [index, share] of weightedShares(claims, limits.capacity).entries()) {
    const own = state.apps[index]!;
    const { demand: asked, guaranteed } = claims[index]!;
    own.shareRate = Math.floor((share - Math.min(asked, guaranteed)) * MICROS_PER_MS);
    // Full at first: demand that just moved to another node is no reason to cut anybody's lease.
    const most = shareDepth(limits, own.shareRate);
    own.share = wasOverloaded ? Math.min(own.share, most) : most;
  }
}
