import { compare, median, medianRatio } from './statistics.js';
import { type Series } from './suite.js';

/** A series in brief: a line of the table, and of the JSON file. */
export interface Row {
  readonly suite: string;
  readonly case: string;
  readonly contender: string;
  readonly metric: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly ratio: number | null;
}

export function toRow(suite: string, series: Series): Row {
  return {
    suite,
    case: series.case,
    contender: series.contender,
    metric: series.metric,
    median: median(series.values),
    min: Math.min(...series.values),
    max: Math.max(...series.values),
    ratio: ratioOf(series),
  };
}

function ratioOf({ values, baseline, isUnpaired }: Series): number | null {
  if (baseline === undefined) return null;
  return isUnpaired ? compare(values, baseline).ratio : medianRatio(values, baseline);
}
