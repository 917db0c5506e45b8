import { createHash } from 'node:crypto';
import { InvalidArgumentError } from '../../common/errors.js';
import { boundedKey, digestOf } from '../../common/ids.js';
import { KeyedHash } from '../../common/keyed-hash.js';
import { type SharedLimit } from '../remote-store.js';

/**
 * Into how many hash tags buckets are spread. On Redis Cluster only keys of one slot can travel in
 * one call: few tags make full batches, many spread the load over more masters.
 */
export const SHARDS = 64;

const NAME = /^[\w.:/-]{1,64}$/;
const NAME_IN_WORDS = 'up to 64 letters, digits and the signs _ . : / -';

/** Where a cluster's quota is kept; all in one slot, because one script settles all of it. */
export interface QuotaKeys {
  readonly ledger: string;
  readonly deadlines: string;
  readonly limits: string;
  readonly consumed: string;
  /** The set of nodes that may serve all apps; that of one app has its name added. */
  readonly nodes: string;
}

/** Where the configuration is kept; all in one slot, because a script writes most of it at once. */
export interface ConfigKeys {
  readonly config: string;
  readonly history: string;
  readonly channel: string;
  readonly acks: string;
  readonly ackDeadlines: string;
  readonly orders: string;
}

/** Where the figures of the fleet are kept. */
export interface BoardKeys {
  readonly nodes: string;
  readonly lead: string;
  named(name: string): string;
}

/**
 * The names of things in Redis: `<prefix>:{<shard>}:<limit>:<key>`.
 *
 * The shard comes first, so braces in a user's key do not move it. A limit's id is always three
 * names without a colon, policy, tier and algorithm; so a key cannot reach into another limit.
 */
export class RedisKeys {
  private readonly heads: readonly string[];
  /**
   * All processes of a fleet have to agree on it, so its secret is the prefix: whoever does not know
   * that cannot aim keys at one shard.
   */
  private readonly hash: KeyedHash;

  constructor(private readonly prefix: string) {
    if (!NAME.test(prefix)) throw new InvalidArgumentError('store.prefix', prefix, NAME_IN_WORDS);
    const seed = createHash('sha256').update(prefix).digest();
    this.hash = new KeyedHash(Uint32Array.of(seed.readUInt32LE(0), seed.readUInt32LE(4)));
    this.heads = Array.from({ length: SHARDS }, (_, shard) => `${prefix}:{b${shard}}:`);
  }

  shardOf(key: string): number {
    return this.hash.of(key) % SHARDS;
  }

  bucket(limit: SharedLimit, key: string): string {
    return `${this.heads[this.shardOf(key)]!}${limit.id}:${storable(key)}`;
  }

  /** When a bucket was last reset; in its slot, and with a name that no policy can have. */
  reset(limit: SharedLimit, key: string): string {
    return `${this.heads[this.shardOf(key)]!}:${limit.id}:${storable(key)}`;
  }

  /** Written to find out whether a shard takes writes. */
  probe(shard: number): string {
    return `${this.heads[shard]!}probe`;
  }

  nodes(): string {
    return `${this.prefix}:{nodes}`;
  }

  config(): ConfigKeys {
    const head = `${this.prefix}:{config}:`;
    return {
      config: `${head}current`,
      history: `${head}history`,
      channel: `${head}revision`,
      acks: `${head}acks`,
      ackDeadlines: `${head}ack-deadlines`,
      orders: `${head}orders`,
    };
  }

  /** An answer of the shared cache. What follows the prefix has no brace, as everything else has. */
  answer(key: string): string {
    return `${this.prefix}:answer:${storable(key)}`;
  }

  /** The lease of the node that probes a resource. */
  probing(resource: string): string {
    return `${this.prefix}:probing:${storable(resource)}`;
  }

  board(): BoardKeys {
    const head = `${this.prefix}:{monitor}:`;
    return { nodes: `${head}nodes`, lead: `${head}lead`, named: (name) => `${head}${name}` };
  }

  /** The figures of one node. */
  boardOf(node: string): string {
    return `${this.prefix}:mon:${storable(node)}`;
  }

  quota(clusterId: string): QuotaKeys {
    if (!NAME.test(clusterId)) {
      throw new InvalidArgumentError('clusterId', clusterId, NAME_IN_WORDS);
    }
    const head = `${this.prefix}:{${clusterId}}:`;
    return {
      ledger: `${head}ledger`,
      deadlines: `${head}deadlines`,
      limits: `${head}limits`,
      consumed: `${head}consumed`,
      nodes: `${head}nodes`,
    };
  }
}

/** Lone surrogates would all become the same sign on the wire. */
function storable(key: string): string {
  return key.isWellFormed() ? boundedKey(key) : digestOf(key);
}
