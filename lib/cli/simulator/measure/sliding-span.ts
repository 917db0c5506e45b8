/** Timers and floats meet at the edges of a span; a nanosecond is no difference. */
const EDGE_SECONDS = 1e-9;

/** Most events in any span of this length, ends included. `at` is in order. */
export function mostInAnySpan(at: readonly number[], seconds: number): number {
  let most = 0;
  for (let first = 0, last = 0; last < at.length; last++) {
    while (at[last]! - at[first]! > seconds + EDGE_SECONDS) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/**
 * The most by which tokens exceed `rate` × Δ in any span Δ, however long: what a bucket of that rate
 * must hold at least to admit all of this.
 */
export function mostBeyondRate(at: readonly number[], cost: number, rate: number): number {
  let most = 0;
  let beyond = 0;
  let last = at[0] ?? 0;
  for (const second of at) {
    beyond = Math.max(0, beyond - rate * (second - last)) + cost;
    last = second;
    most = Math.max(most, beyond);
  }
  return most;
}

/** Events in each of the spans that follow one another from 0 on. */
export function countBySpan(at: readonly number[], seconds: number, until: number): number[] {
  const counts = new Array<number>(Math.ceil(until / seconds - EDGE_SECONDS)).fill(0);
  for (const second of at) {
    const span = Math.floor(second / seconds);
    if (span < counts.length) counts[span]!++;
  }
  return counts;
}

export function countBetween(at: readonly number[], from: number, to: number): number {
  let count = 0;
  for (const second of at) if (second >= from && second < to) count++;
  return count;
}

/** The longest time between two events, or between the last of them and the end. */
export function longestGap(at: readonly number[], until: number): number {
  let longest = 0;
  let last = 0;
  for (const second of [...at, until]) {
    longest = Math.max(longest, second - last);
    last = Math.max(last, second);
  }
  return longest;
}
