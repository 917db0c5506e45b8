// Imported: the global of the same name is a getter, some 6 ns slower at each read.
import { performance } from 'node:perf_hooks';
import { type Contender, type ContenderOptions } from '../contender.js';

interface Bucket {
  tokens: number;
  lastMs: number;
}

interface FloorDecision {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly limit: number;
  readonly retryAfterMs: number;
  readonly resetMs: number;
  readonly timestampMs: number;
  readonly policy: string;
  readonly tier: string;
  readonly source: string;
}

/**
 * The least that a keyed token bucket with a full answer can cost in plain JavaScript: find the
 * bucket, read the clock, refill, take, tell. No options, no checks, no cap on keys, no sweep.
 */
class Floor implements Contender<FloorDecision> {
  readonly answers = 'at once';
  private readonly buckets = new Map<string, Bucket>();
  private readonly originMs = performance.timeOrigin;
  private readonly limit: number;
  private readonly tokensPerMs: number;

  constructor(options: ContenderOptions) {
    this.limit = options.limit;
    this.tokensPerMs = options.limit / options.periodMs;
  }

  decide(key: string): FloorDecision {
    return this.take(key, 1);
  }

  allowed(decision: FloorDecision): boolean {
    return decision.allowed;
  }

  close(): void {
    this.buckets.clear();
  }

  private take(key: string, cost: number): FloorDecision {
    const { limit, tokensPerMs } = this;
    const nowMs = performance.now();
    let bucket = this.buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: limit, lastMs: nowMs };
      this.buckets.set(key, bucket);
    }
    let tokens = Math.min(limit, bucket.tokens + (nowMs - bucket.lastMs) * tokensPerMs);
    const allowed = tokens >= cost;
    const retryAfterMs = allowed ? 0 : (cost - tokens) / tokensPerMs;
    if (allowed) tokens -= cost;
    bucket.tokens = tokens;
    bucket.lastMs = nowMs;
    return {
      allowed,
      remaining: Math.floor(tokens),
      limit,
      retryAfterMs,
      resetMs: (limit - tokens) / tokensPerMs,
      timestampMs: this.originMs + nowMs,
      policy: 'api',
      tier: 'local',
      source: 'local',
    };
  }
}

export function createFloor(options: ContenderOptions): Contender {
  return new Floor(options);
}
