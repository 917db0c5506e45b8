import { type Shortage } from './quota-protocol.js';
import { UNITS_PER_TOKEN, type QuotaLimits } from './quota-limits.js';
import { rateDuringOverload } from './quota-refill.js';
import { type AppLease, type LedgerState } from './quota-state.js';

/** Units that can be had now, by the bucket they come from, and which level keeps it from more. */
export interface Offer {
  fromStock: number;
  fromCredit: number;
  lent: number;
  limitedBy: Shortage;
}

/**
 * How much of `units` every level covers: first out of the app's guaranteed bucket, then beyond it.
 *
 * The part beyond is lent only while the cluster's stock, less the guaranteed stock of the other apps,
 * stays above the reserve of the app's priority: a part of the most that it could be beside what is
 * leased, so that a full bucket always has something for everybody. During overload it runs through
 * the app's share instead, which knows the priorities too: both together left capacity unused. It spends burst credit unless the app is elastic: then idle capacity and shares are all
 * that bounds it, or a long overload would come down to the guarantees and leave the rest unused.
 */
export function offer(
  limits: QuotaLimits,
  state: LedgerState,
  index: number,
  units: number,
): Offer {
  const app = limits.apps[index]!;
  const own = state.apps[index]!;
  const { cluster } = state;
  const level = limits.capacity === 0 ? Infinity : cluster.level;
  const fromStock = Math.max(0, Math.min(units, own.stock, own.room, level));
  const rest = units - fromStock;
  const spendsCredit = !app.elastic;
  let byApp = own.room - fromStock;
  if (spendsCredit) byApp = Math.min(byApp, own.credit);
  const others = stockOfOthers(state, index);
  let byCluster = level - fromStock - others;
  if (limits.capacity === 0) byCluster = Infinity;
  else if (cluster.overloaded) {
    // A share that is all of the app's ceiling is what an idle cluster would give it as well.
    if (rateDuringOverload(state, index, app.guaranteed) < app.burst) {
      byCluster = Math.min(byCluster, own.share);
    } else byApp = Math.min(byApp, own.share);
  } else {
    const mostFree = Math.max(0, depthNow(limits, state) - cluster.outstanding - others);
    byCluster -= Math.floor(app.reserved * mostFree);
  }
  const beyond = Math.max(0, Math.min(rest, byApp, byCluster));
  const isShort = !(beyond >= rest);
  const limitedBy = !isShort ? 'none' : byCluster <= byApp ? 'cluster' : 'app';
  return {
    fromStock,
    fromCredit: spendsCredit ? beyond : 0,
    lent: spendsCredit ? 0 : beyond,
    limitedBy,
  };
}

export function unitsOf({ fromStock, fromCredit, lent }: Omit<Offer, 'limitedBy'>): number {
  return fromStock + fromCredit + lent;
}

/** Cuts an offer down to whole tokens, and no more than that; what is beyond the guarantee goes first. */
export function wholeTokens(made: Offer, mostTokens: number): Offer {
  const units = unitsOf(made);
  const tokens = Math.min(mostTokens, Math.floor(units / UNITS_PER_TOKEN));
  let excess = units - tokens * UNITS_PER_TOKEN;
  const lent = Math.max(0, made.lent - excess);
  excess -= made.lent - lent;
  const fromCredit = Math.max(0, made.fromCredit - excess);
  excess -= made.fromCredit - fromCredit;
  return { fromStock: made.fromStock - excess, fromCredit, lent, limitedBy: made.limitedBy };
}

/** Takes an offer out of all its buckets. */
export function take(
  limits: QuotaLimits,
  state: LedgerState,
  index: number,
  made: Offer,
  now: number,
): void {
  const own = state.apps[index]!;
  const units = unitsOf(made);
  own.stock -= made.fromStock;
  own.room -= units;
  own.granted += units / UNITS_PER_TOKEN;
  if (limits.capacity > 0) state.cluster.level -= units;
  if (made.fromCredit > 0) {
    own.credit -= made.fromCredit;
    if (own.creditSince === 0) own.creditSince = now;
  }
  if (state.cluster.overloaded) own.share -= made.fromCredit + made.lent;
}

/**
 * Puts what a node gives back into the very buckets that it came from, the last lent first. They have
 * room for it unless they became smaller since; what is above their depth is gone then.
 */
export function giveBack(
  limits: QuotaLimits,
  state: LedgerState,
  index: number,
  lease: AppLease,
  units: number,
): void {
  const own = state.apps[index]!;
  const app = limits.apps[index]!;
  const lent = Math.min(units, lease.lent);
  const fromCredit = Math.min(units - lent, lease.fromCredit);
  const fromStock = Math.min(units - lent - fromCredit, lease.fromStock);
  const total = lent + fromCredit + fromStock;
  lease.lent -= lent;
  lease.fromCredit -= fromCredit;
  lease.fromStock -= fromStock;
  own.outstanding -= total;
  own.room = upTo(own.room, total, app.ceilingDepth - own.outstanding);
  // Refunds of uses that an earlier epoch granted may have taken it down already.
  own.granted = Math.max(0, own.granted - total / UNITS_PER_TOKEN);
  own.stock = Math.min(app.stockDepth, own.stock + fromStock);
  own.credit = Math.min(app.creditDepth, own.credit + fromCredit);
  if (state.cluster.overloaded) own.share += lent + fromCredit;
  const { cluster } = state;
  cluster.outstanding -= total;
  if (limits.capacity === 0) return;
  cluster.level = upTo(cluster.level, total, limits.depth - cluster.outstanding);
}

/**
 * Takes a use back. Where the tokens came from is not known any more, so they go to what the app is
 * sure of; never above any depth, so that a refund cannot lift a bound; and less what has flowed into
 * each bucket in the time since, if the tokens were never used.
 */
export function refund(
  limits: QuotaLimits,
  state: LedgerState,
  index: number,
  tokens: number,
  sinceMicros: number,
): void {
  const own = state.apps[index]!;
  const app = limits.apps[index]!;
  const { cluster } = state;
  const left = (rate: number): number => {
    return Math.max(0, tokens * UNITS_PER_TOKEN - rate * sinceMicros);
  };
  own.stock = Math.min(app.stockDepth, own.stock + left(app.guaranteed));
  own.room = upTo(own.room, left(app.burst), app.ceilingDepth - own.outstanding);
  own.used = Math.max(0, own.used - tokens);
  own.granted = Math.max(0, own.granted - tokens);
  if (limits.capacity === 0) return;
  const depth = depthNow(limits, state) - cluster.outstanding;
  cluster.level = upTo(cluster.level, left(limits.capacity), depth);
}

/** Books tokens that were used without a grant, and are none; no bucket owes more than it holds. */
export function bookDebt(
  limits: QuotaLimits,
  state: LedgerState,
  index: number,
  tokens: number,
): void {
  const own = state.apps[index]!;
  const app = limits.apps[index]!;
  const { cluster } = state;
  const units = tokens * UNITS_PER_TOKEN;
  own.stock = Math.max(own.stock - units, 0 - app.stockDepth);
  own.room = Math.max(own.room - units, 0 - app.ceilingDepth);
  own.used += tokens;
  if (limits.capacity > 0) cluster.level = Math.max(cluster.level - units, 0 - limits.depth);
}

/** Units that the cluster holds, leased ones included: less while it learns what nodes still hold. */
function depthNow(limits: QuotaLimits, { cluster }: LedgerState): number {
  return cluster.lastMicros < cluster.learningUntil ? limits.learningDepth : limits.depth;
}

/** Fills a bucket, but takes nothing from one that is above that already. */
function upTo(level: number, units: number, depth: number): number {
  return Math.max(level, Math.min(level + units, depth));
}

/** Books leased units as used, the guaranteed ones first. What the node does not hold is ignored. */
export function useUp(state: LedgerState, index: number, lease: AppLease, units: number): void {
  const own = state.apps[index]!;
  const fromStock = Math.min(units, lease.fromStock);
  const fromCredit = Math.min(units - fromStock, lease.fromCredit);
  const lent = Math.min(units - fromStock - fromCredit, lease.lent);
  const total = fromStock + fromCredit + lent;
  lease.fromStock -= fromStock;
  lease.fromCredit -= fromCredit;
  lease.lent -= lent;
  own.outstanding -= total;
  own.used += total / UNITS_PER_TOKEN;
  state.cluster.outstanding -= total;
}

/** Asked for every request of every app, so it is a plain loop: with 1,000 apps that shows. */
function stockOfOthers({ apps }: LedgerState, index: number): number {
  let sum = 0;
  for (let other = 0; other < apps.length; other++) {
    const { stock } = apps[other]!;
    if (other !== index && stock > 0) sum += stock;
  }
  return sum;
}
