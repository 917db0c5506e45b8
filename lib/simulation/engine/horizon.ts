import { type QuotaLimits } from '../../algorithms/quota/index.js';

const SHORTEST_MS = 10;
const LONGEST_MS = 100;

/** For how long a lease is meant to last: a quarter of the time in which the capacity fills the burst. */
export function horizonMs({ capacity, depth }: QuotaLimits): number {
  const ms = depth / (4 * capacity) / 1000;
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, ms));
}
