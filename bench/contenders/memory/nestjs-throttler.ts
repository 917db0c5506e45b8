import { ThrottlerStorageService } from '@nestjs/throttler';
import { type Contender, type ContenderOptions } from '../contender.js';

type Hit = Awaited<ReturnType<ThrottlerStorageService['increment']>>;

/**
 * The default storage, called as its guard calls it: the block lasts as long as the window unless
 * told otherwise. The guard also hashes the key and writes headers; that is left out here.
 */
class NestjsThrottler implements Contender<Hit> {
  readonly answers = 'later';
  private readonly storage = new ThrottlerStorageService();

  constructor(private readonly options: ContenderOptions) {}

  decide(key: string): Promise<Hit> {
    const { limit, periodMs } = this.options;
    return this.storage.increment(key, periodMs, limit, periodMs, 'default');
  }

  allowed(hit: Hit): boolean {
    return !hit.isBlocked;
  }

  close(): void {
    this.storage.onApplicationShutdown();
  }
}

export function createNestjsThrottler(options: ContenderOptions): Contender {
  return new NestjsThrottler(options);
}
