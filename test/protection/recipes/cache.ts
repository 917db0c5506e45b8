import { type Redis } from 'ioredis';
import { joinValue, partKeys, splitValue, type Protection, type SplitManifest } from 'nestjs-weir';

/** Options that the client needs: without them, commands queue up unseen while Redis is away. */
export const CLIENT_OPTIONS = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  // Lets go of a command that Redis never answers, and so of its slot.
  commandTimeout: 500,
};

const PART_BYTES = 256 * 1024;

/** Needs the resources `cache` and `bigCache`. */
export class Cache {
  constructor(
    private readonly redis: Redis,
    private readonly protection: Protection,
  ) {}

  get(key: string, resource = 'cache'): Promise<Buffer | null> {
    return this.protection.run(resource, () => this.redis.getBuffer(key), { label: key });
  }

  async set(key: string, value: string | Buffer, ttlMs: number): Promise<void> {
    const write = () => this.redis.set(key, value, 'PX', ttlMs);
    await this.protection.run('cache', write, { label: key, value });
  }

  /** A value of any size. Each part is a call of its own, so that others get a turn in between. */
  async setBig(key: string, value: Buffer, ttlMs: number): Promise<void> {
    const { manifest, parts } = splitValue(value, PART_BYTES);
    for (const [n, partKey] of partKeys(key, manifest).entries()) {
      await this.set(partKey, parts[n]!, ttlMs);
    }
    // Last: until then, readers find the value of before.
    await this.set(`{${key}}`, JSON.stringify(manifest), ttlMs);
  }

  /** Big values are read through a resource of their own, with less room. */
  async getBig(key: string): Promise<Buffer | undefined> {
    const text = await this.get(`{${key}}`);
    if (text === null) return undefined;
    const manifest = JSON.parse(text.toString()) as SplitManifest;
    const parts: (Buffer | null)[] = [];
    for (const partKey of partKeys(key, manifest)) parts.push(await this.get(partKey, 'bigCache'));
    return joinValue(manifest, parts);
  }
}
