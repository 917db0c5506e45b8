// Checked by the compiler alone: whatever ioredis takes, the store takes as well, and has a name for.
import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import {
  type RedisClient,
  type RedisClientOptions,
  type RedisClusterOptions,
  type RedisNode,
} from 'nestjs-weir';

type Missing<Theirs, Ours> = Exclude<keyof Theirs, keyof Ours>;
type Takes<Ours, Theirs extends Ours> = [Ours, Theirs];

export type Client = Takes<RedisClient, Redis | Cluster>;
export type Options = Takes<RedisClientOptions, RedisOptions>;
export type OfCluster = Takes<RedisClusterOptions, ClusterOptions>;
export type Node = Takes<RedisNode, ClusterNode>;

export const noneIsMissing: [
  Missing<RedisOptions, RedisClientOptions>,
  Missing<ClusterOptions, RedisClusterOptions>,
] extends [never, never]
  ? true
  : false = true;
