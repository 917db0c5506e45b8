import { clusterDepth, type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import { DELAY_SPREAD_MICROS } from '../engine/network.js';
import { type Requests } from '../engine/observations.js';
import { type RunPlan, type RunRecord } from '../engine/run.js';
import { IdealBucket, IdealLedger } from './ideal.js';
import { mostBeyondRate, mostInAnySpan } from './sliding-span.js';

/** `bucket`: one bucket of the cluster's figures; `ledger`: all rules of the quota, without network. */
export type IdealKind = 'bucket' | 'ledger';

/** The spans in which the promise about the cluster's capacity is looked at. */
export const SPANS_SECONDS = [0.1, 1, 10];

export function capacityOf({ cluster }: QuotaFigures): number {
  return cluster!.capacity;
}

export function depthOf({ cluster, maxCost, paceMs }: QuotaFigures): number {
  return clusterDepth(cluster!, maxCost, paceMs);
}

/** Those of the requests that the ideal would have admitted. */
export function idealOf({ quota, cost }: RunPlan, offered: Requests, kind: IdealKind): Requests {
  const { figures } = quota;
  const ideal =
    kind === 'bucket'
      ? new IdealBucket(capacityOf(figures), depthOf(figures))
      : new IdealLedger(figures);
  const at: number[] = [];
  const app: number[] = [];
  for (const [i, second] of offered.at.entries()) {
    if (!ideal.take(cost, second, offered.app[i]!)) continue;
    at.push(second);
    app.push(offered.app[i]!);
  }
  return { at, app };
}

/** Admitted, as a part of what the ideal would have admitted of the same requests. */
export function utilisation(run: RunRecord, ideal: Requests): number {
  return run.admitted.at.length / ideal.at.length;
}

/** Decisions that did not wait for the store. */
export function localPart({ decisions, waited }: RunRecord): number {
  return 1 - waited / decisions;
}

/** Most that was admitted in any such span, as a part of capacity × Δ + depth. */
export function worstIn({ quota, cost }: RunPlan, run: RunRecord, seconds: number): number {
  const bound = capacityOf(quota.figures) * seconds + depthOf(quota.figures);
  return (mostInAnySpan(run.admitted.at, seconds) * cost) / bound;
}

/** Tokens beyond capacity × Δ + depth, in the worst span of any length; 0 if there is none. */
export function excess({ quota, cost }: RunPlan, run: RunRecord): number {
  const { figures } = quota;
  const beyond = mostBeyondRate(run.admitted.at, cost, capacityOf(figures));
  return Math.max(0, beyond - depthOf(figures));
}

/**
 * Tokens are granted in the store and counted here when the answer is at the node: a slow answer and
 * a quick one after it are closer together than their grants were.
 */
export function onTheWay(figures: QuotaFigures): number {
  return (capacityOf(figures) * DELAY_SPREAD_MICROS) / 1e6;
}

export function callsPerSecond(run: RunRecord, from: number, to: number): number {
  return run.calls.filter((second) => second >= from && second < to).length / (to - from);
}
