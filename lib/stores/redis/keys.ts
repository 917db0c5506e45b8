import { InvalidArgumentError } from '../../common/errors.js';
import { boundedKey, digestOf, spread } from '../../common/ids.js';
import { type SharedLimit } from '../remote-store.js';

/**
 * Into how many hash tags buckets are spread. On Redis Cluster only keys of one slot can travel in
 * one call: few tags make full batches, many spread the load over more masters.
 */
export const SHARDS = 64;

/**
 * The names of things in Redis: `<prefix>:{<shard>}:<limit>:<key>`.
 *
 * The shard comes first, so braces in a user's key do not move it; prefix and limit ids have no
 * colon or brace, so a key cannot reach into another limit.
 */
export class RedisKeys {
  private readonly heads: readonly string[];

  constructor(private readonly prefix: string) {
    if (!/^[\w.:/-]{1,64}$/.test(prefix)) {
      throw new InvalidArgumentError(
        'store.prefix',
        prefix,
        'up to 64 letters, digits and the signs _ . : / -',
      );
    }
    this.heads = Array.from({ length: SHARDS }, (_, shard) => `${prefix}:{b${shard}}:`);
  }

  shardOf(key: string): number {
    return spread(key, SHARDS);
  }

  bucket(shared: SharedLimit, key: string): string {
    return `${this.heads[this.shardOf(key)]!}${shared.id}:${storable(key)}`;
  }

  /** Written to find out whether a shard takes writes. */
  probe(shard: number): string {
    return `${this.heads[shard]!}probe`;
  }

  nodes(): string {
    return `${this.prefix}:{nodes}`;
  }
}

/** Lone surrogates would all become the same sign on the wire. */
function storable(key: string): string {
  return key.isWellFormed() ? boundedKey(key) : digestOf(key);
}
