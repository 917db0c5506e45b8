import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { type Redis } from 'ioredis';
import { type Contender, type ContenderOptions } from '../contender.js';
import { connect } from './connect.js';

type Hit = Awaited<ReturnType<ThrottlerStorageRedisService['increment']>>;

/**
 * Called as the guard of @nestjs/throttler calls it: the block lasts as long as the window. Keys
 * begin with a brace of its own, so it needs no prefix to keep apart.
 */
class ThrottlerStorageRedis implements Contender<Hit> {
  readonly answers = 'later';
  private readonly storage: ThrottlerStorageRedisService;

  constructor(
    private readonly options: ContenderOptions,
    private readonly client: Redis,
  ) {
    this.storage = new ThrottlerStorageRedisService(client);
  }

  decide(key: string): Promise<Hit> {
    const { limit, periodMs } = this.options;
    return this.storage.increment(key, periodMs, limit, periodMs, 'default');
  }

  allowed(hit: Hit): boolean {
    return !hit.isBlocked;
  }

  close(): void {
    this.client.disconnect();
  }
}

export async function createThrottlerStorageRedis(options: ContenderOptions): Promise<Contender> {
  return new ThrottlerStorageRedis(options, await connect(options));
}
