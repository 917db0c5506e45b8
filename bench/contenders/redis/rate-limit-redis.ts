import { type ClientRateLimitInfo, rateLimit } from 'express-rate-limit';
import { type Redis } from 'ioredis';
import { RedisStore, type RedisReply } from 'rate-limit-redis';
import { type Contender, type ContenderOptions } from '../contender.js';
import { connect } from './connect.js';

/** The store, called as the middleware calls it; the middleware itself is left out. */
class RateLimitRedis implements Contender<ClientRateLimitInfo> {
  readonly answers = 'later';

  constructor(
    private readonly store: RedisStore,
    private readonly client: Redis,
    private readonly limit: number,
  ) {}

  decide(key: string): Promise<ClientRateLimitInfo> {
    return this.store.increment(key);
  }

  allowed(info: ClientRateLimitInfo): boolean {
    return info.totalHits <= this.limit;
  }

  close(): void {
    this.client.disconnect();
  }
}

export async function createRateLimitRedis(options: ContenderOptions): Promise<Contender> {
  const client = await connect(options);
  const store = new RedisStore({
    sendCommand: (command: string, ...args: string[]) =>
      client.call(command, ...args) as Promise<RedisReply>,
    prefix: `${options.prefix}:`,
  });
  // Hands the store its window and lets it load its scripts.
  rateLimit({ windowMs: options.periodMs, limit: options.limit, store });
  await store.incrementScriptSha;
  return new RateLimitRedis(store, client, options.limit);
}
