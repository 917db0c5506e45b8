import { HttpException, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { type Contender, type ContenderOptions } from '../contender.js';
import { stage } from './stage.js';

interface Bucket {
  tokens: number;
  lastMs: number;
}

interface Response {
  /** Express. */
  setHeader?(name: string, value: string): void;
  /** Fastify. */
  header(name: string, value: string): void;
}

/** The guard that one writes in an afternoon: a token bucket per address, and the headers. */
export class HandWrittenGuard implements CanActivate {
  private readonly buckets = new Map<string, Bucket>();
  private readonly perMs: number;
  private readonly policy: string;

  constructor(private readonly options: ContenderOptions) {
    this.perMs = options.limit / options.periodMs;
    this.policy = `"api";q=${options.limit};w=${Math.ceil(options.periodMs / 1000)}`;
  }

  canActivate(context: ExecutionContext): boolean {
    const { limit, headers } = this.options;
    const request = context.switchToHttp().getRequest<{ ip: string }>();
    const nowMs = performance.now();
    let bucket = this.buckets.get(request.ip);
    if (bucket === undefined) {
      bucket = { tokens: limit, lastMs: nowMs };
      this.buckets.set(request.ip, bucket);
    }
    const tokens = Math.min(limit, bucket.tokens + (nowMs - bucket.lastMs) * this.perMs);
    const isAllowed = tokens >= 1;
    bucket.tokens = isAllowed ? tokens - 1 : tokens;
    bucket.lastMs = nowMs;
    if (headers !== false) {
      const response = context.switchToHttp().getResponse<Response>();
      const resetSeconds = Math.ceil((limit - bucket.tokens) / this.perMs / 1000);
      const limits = `"api";r=${Math.floor(bucket.tokens)};t=${resetSeconds}`;
      if (response.setHeader !== undefined) {
        response.setHeader('RateLimit-Policy', this.policy);
        response.setHeader('RateLimit', limits);
      } else {
        response.header('RateLimit-Policy', this.policy);
        response.header('RateLimit', limits);
      }
    }
    if (!isAllowed) throw new HttpException('Too many requests', 429);
    return true;
  }
}

export function createHandWritten(options: ContenderOptions): Promise<Contender> {
  const guard = new HandWrittenGuard(options);
  return stage({ metadata: {}, decorate: undefined, guardOf: () => guard, answers: 'at once' });
}
