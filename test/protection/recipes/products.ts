import { type Redis } from 'ioredis';
import { ABSENT, LocalCache, TOO_BIG, type Found, type Protection } from 'nestjs-weir';

export interface Product {
  readonly id: string;
  readonly name: string;
}

/** The texts that stand in Redis for values that are not there; no JSON looks like that. */
const MARKERS = new Map<string, typeof ABSENT | typeof TOO_BIG>([
  ['absent', ABSENT],
  ['too big', TOO_BIG],
]);

/** From Redis, else from this process, else from the database. Needs the resources `cache` and `db`. */
export class Products {
  private readonly local = new LocalCache<Product>({ ttl: '5m', maxEntries: 10_000 });

  constructor(
    private readonly redis: Redis,
    private readonly load: (id: string, signal: AbortSignal) => Promise<Product | undefined>,
    private readonly protection: Protection,
  ) {}

  find(id: string, signal?: AbortSignal): Promise<Product | undefined> {
    const key = `product:${id}`;
    return this.protection.firstOf<Product>(
      [
        { resource: 'cache', run: () => this.read(key), keep: (found) => this.write(key, found) },
        { run: () => this.local.get(key), keep: (found) => this.local.set(key, found) },
        { resource: 'db', run: (run) => this.load(id, run.signal) },
      ],
      { key, signal, deadlineMs: 500, label: key },
    );
  }

  private async read(key: string): Promise<Found<Product>> {
    const text = await this.redis.get(key);
    if (text === null) return undefined;
    return MARKERS.get(text) ?? (JSON.parse(text) as Product);
  }

  private write(key: string, found: Found<Product>): Promise<unknown> {
    const marker = [...MARKERS].find(([, one]) => one === found)?.[0];
    return this.redis.set(key, marker ?? JSON.stringify(found), 'PX', 30_000);
  }
}
