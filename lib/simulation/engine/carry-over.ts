import {
  compileQuota,
  QuotaLedger,
  type QuotaCall,
  type QuotaFigures,
  type QuotaLimits,
  type QuotaState,
} from '../../algorithms/quota/index.js';

/** A call of nobody about nothing: it settles what is due and leaves no trace. */
const NOBODY: QuotaCall = {
  node: '',
  incarnation: '',
  seq: 1,
  seenEpoch: 0,
  seenSequence: 0,
  leaving: true,
  apps: [],
};

/**
 * A ledger with other limits and the same state: settled under the old limits up to now, then each
 * bucket as full as it was in proportion to its depth. Leases stay as they are; a cluster bucket that
 * they would overfill gets nothing more until they are used up.
 */
export function carryOver(
  old: QuotaLedger,
  oldFigures: QuotaFigures,
  newFigures: QuotaFigures,
  now: number,
): QuotaLedger {
  const ledger = new QuotaLedger(compileQuota(newFigures));
  if (old.peek() === undefined) return ledger;
  old.settle(now, NOBODY);
  ledger.settle(now, NOBODY);
  copyState(old.peek()!, ledger.peek()!);
  keepRatio(ledger.peek()!, compileQuota(oldFigures), compileQuota(newFigures));
  return ledger;
}

function copyState(from: Readonly<QuotaState>, to: Readonly<QuotaState>): void {
  Object.assign(to.cluster, from.cluster);
  for (const [index, app] of from.apps.entries()) Object.assign(to.apps[index]!, app);
  to.leases.clear();
  for (const [name, lease] of from.leases) to.leases.set(name, lease);
}

function keepRatio(state: Readonly<QuotaState>, from: QuotaLimits, to: QuotaLimits): void {
  const { cluster } = state;
  const most = Math.max(0, to.depth - cluster.outstanding);
  cluster.level = Math.min(most, inProportion(cluster.level, from.depth, to.depth));
  for (const [index, own] of state.apps.entries()) {
    const [before, after] = [from.apps[index]!, to.apps[index]!];
    own.stock = inProportion(own.stock, before.stockDepth, after.stockDepth);
    own.room = inProportion(own.room, before.ceilingDepth, after.ceilingDepth);
    own.credit = inProportion(own.credit, before.creditDepth, after.creditDepth);
    own.share = inProportion(own.share, from.capacity, to.capacity);
    own.shareRate = inProportion(own.shareRate, from.capacity, to.capacity);
  }
}

function inProportion(level: number, from: number, to: number): number {
  return from === 0 ? 0 : Math.floor((level * to) / from);
}
