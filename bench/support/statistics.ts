export function median(values: readonly number[]): number {
  const sorted = ascending(values);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return sorted.length === 0 ? NaN : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The smallest value that at least `share` of all values do not exceed (nearest rank). */
export function percentile(values: readonly number[], share: number): number {
  const sorted = ascending(values);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}

/**
 * The median of the ratios of each round, not the ratio of the medians: what slows a whole round
 * down slows both of its figures down, and so falls out.
 */
export function medianRatio(values: readonly number[], baseline: readonly number[]): number {
  return median(values.map((value, round) => value / (baseline[round] ?? NaN)));
}

/** The ratio of two lots of figures, and the interval in which it lies nineteen times out of twenty. */
export interface Comparison {
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Of figures that come from different processes, so that those of one round have nothing to do with
 * each other: the median of the ratios of each to each (Hodges and Lehmann), and the interval by the
 * ranks of Mann and Whitney. A process that went wrong takes part in a few of the ratios only.
 */
export function compare(values: readonly number[], baseline: readonly number[]): Comparison {
  const ratios = ascending(values.flatMap((value) => baseline.map((other) => value / other)));
  const [n, m] = [values.length, baseline.length];
  const spread = 1.96 * Math.sqrt((n * m * (n + m + 1)) / 12);
  const skipped = Math.max(0, Math.floor((n * m) / 2 - spread) - 1);
  return {
    ratio: median([...ratios]),
    low: ratios[skipped] ?? NaN,
    high: ratios[ratios.length - 1 - skipped] ?? NaN,
  };
}

function ascending(values: readonly number[]): Float64Array {
  return Float64Array.from(values).sort();
}
