import { type Redis } from 'ioredis';
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible';
import { type Contender, type ContenderOptions } from '../contender.js';
import { connect } from './connect.js';

class RateLimiterFlexible implements Contender<RateLimiterRes> {
  readonly answers = 'later';

  constructor(
    private readonly limiter: RateLimiterRedis,
    private readonly client: Redis,
  ) {}

  decide(key: string): Promise<RateLimiterRes> {
    return this.limiter.consume(key, 1);
  }

  /** A key that is blocked in memory has no count any more, only a time to wait. */
  allowed(result: RateLimiterRes): boolean {
    return result.remainingPoints > 0 || result.consumedPoints === this.limiter.points;
  }

  close(): void {
    this.client.disconnect();
  }
}

/** Connects without an offline queue, as its documentation does. */
export async function createRateLimiterFlexible(options: ContenderOptions): Promise<Contender> {
  return create(options, await connect(options, { enableOfflineQueue: false }));
}

/** Pipelining of ioredis, which its own documentation does not mention, and which a user who tunes it would turn on. */
export async function createPipelined(options: ContenderOptions): Promise<Contender> {
  const client = await connect(options, { enableOfflineQueue: false, enableAutoPipelining: true });
  return create(options, client);
}

/** Its "In-memory Block Strategy" against floods. */
export async function createBlocking(options: ContenderOptions): Promise<Contender> {
  const client = await connect(options, { enableOfflineQueue: false });
  return create(options, client, { inMemoryBlockOnConsumed: options.limit + 1 });
}

function create(
  options: ContenderOptions,
  client: Redis,
  blocking: { inMemoryBlockOnConsumed?: number } = {},
): Contender {
  const limiter = new RateLimiterRedis({
    storeClient: client,
    keyPrefix: options.prefix,
    points: options.limit,
    duration: options.periodMs / 1000,
    ...blocking,
  });
  return new RateLimiterFlexible(limiter, client);
}
