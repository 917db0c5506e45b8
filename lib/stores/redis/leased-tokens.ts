import { generationAt } from '../../algorithms/leased-bucket.js';
import { AlgorithmCode, type Limit } from '../../algorithms/limit.js';

/** As lua/buckets.lua keeps it: the bucket, what is leased of it, and the limit that it has seen. */
const LEASED_BYTES = 72;
const LIMIT_BYTES = 41;
const COUNTERS_AT = 32;
const AHEAD_AT = 64;
const LAST_AT = 8;

/** Tokens of a bucket that processes hold, by what is kept of it. */
export function leasedTokens(raw: Buffer, limit: Limit, nowMicros: number): number {
  const isLeased = raw.length === LEASED_BYTES || raw.length === LEASED_BYTES + LIMIT_BYTES;
  if (!isLeased || limit.algorithm !== AlgorithmCode.TokenBucket) return 0;
  const ahead = raw.readDoubleLE(AHEAD_AT);
  const passed = generationAt(nowMicros + ahead) - generationAt(raw.readDoubleLE(LAST_AT) + ahead);
  const [current, previous] = [raw.readDoubleLE(COUNTERS_AT), raw.readDoubleLE(COUNTERS_AT + 8)];
  if (passed <= 0) return current + previous;
  return passed === 1 ? current : 0;
}
