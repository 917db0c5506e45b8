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

/**
 * Where the median of what was sampled lies with at least 95 %, by the ranks of the sample: for nine
 * values from the second to the eighth. With fewer than six no two ranks are that sure.
 */
export function medianInterval(values: readonly number[]): readonly [low: number, high: number] {
  const sorted = ascending(values);
  const { length } = sorted;
  let outside = 0;
  let rank = 0;
  for (let below = 0, ways = 1; below < length; below++) {
    outside += 2 * ways * 0.5 ** length;
    if (outside > 0.05) break;
    rank = below + 1;
    ways = (ways * (length - below)) / (below + 1);
  }
  const skipped = Math.max(0, rank - 1);
  return [sorted[skipped] ?? NaN, sorted[length - 1 - skipped] ?? NaN];
}

function ascending(values: readonly number[]): Float64Array {
  return Float64Array.from(values).sort();
}
