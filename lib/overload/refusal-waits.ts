const MOST_WAITS = 16;

/**
 * The waits that refusals name in turn, whole numbers from the least to twice as much: callers that all come back at the
 * same instant would be refused again.
 */
export function refusalWaits(leastWait: number): readonly number[] {
  const least = Math.ceil(leastWait);
  const count = Math.min(least + 1, MOST_WAITS);
  return Array.from({ length: count }, (_, i) => least + Math.round((least * i) / (count - 1)));
}
