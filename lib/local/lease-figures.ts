import { type QuotaLimits } from '../algorithms/quota/quota-limits.js';

const SHORTEST_MS = 10;
const LONGEST_MS = 100;

/** For how long a lease should last: a quarter of the time in which the capacity fills the burst. */
export function horizonMs({ capacity, depth, apps }: QuotaLimits): number {
  const rate = capacity === 0 ? apps.reduce((sum, app) => sum + app.burst, 0) : capacity;
  const burst = capacity === 0 ? apps.reduce((sum, app) => sum + app.stockDepth, 0) : depth;
  const ms = burst / (4 * rate) / 1000;
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, ms));
}
