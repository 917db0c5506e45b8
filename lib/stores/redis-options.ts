/**
 * The options of ioredis as far as types go: applications without ioredis have types, too, and those with it hand
 * over its own objects. A test holds them against the types of ioredis.
 */

/** A client of ioredis, of one server or of a Cluster. */
export interface RedisClient {
  readonly status: string;
  defineCommand(
    name: string,
    definition: { lua: string; numberOfKeys?: number; readOnly?: boolean },
  ): void;
  disconnect(): void;
}

/** Options of ioredis that single servers and clusters have in common. */
export interface RedisCommonOptions {
  readonly autoPipeliningIgnoredCommands?: string[] | undefined;
  readonly enableAutoPipelining?: boolean | undefined;
  readonly enableOfflineQueue?: boolean | undefined;
  readonly enableReadyCheck?: boolean | undefined;
  readonly himportFieldsets?: unknown;
  readonly keyPrefix?: string | undefined;
  readonly lazyConnect?: boolean | undefined;
  readonly natMap?: unknown;
  readonly scripts?: unknown;
  readonly showFriendlyErrorStack?: boolean | undefined;
}

/** `RedisOptions` of ioredis. */
export interface RedisClientOptions extends RedisCommonOptions {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: string | undefined;
  readonly family?: number | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly db?: number | undefined;
  readonly tls?: object | undefined;
  readonly sentinels?: { readonly host?: string; readonly port?: number }[] | undefined;
  readonly name?: string | undefined;
  readonly role?: 'master' | 'slave' | undefined;
  readonly Connector?: unknown;
  readonly autoResendUnfulfilledCommands?: boolean | undefined;
  readonly autoResubscribe?: boolean | undefined;
  readonly blockingTimeout?: number | undefined;
  readonly blockingTimeoutGrace?: number | undefined;
  readonly clientInfoTag?: string | undefined;
  readonly commandQueue?: boolean | undefined;
  readonly commandTimeout?: number | undefined;
  readonly connectTimeout?: number | undefined;
  readonly connectionName?: string | undefined;
  readonly disableClientInfo?: boolean | undefined;
  readonly disconnectTimeout?: number | undefined;
  readonly enableTLSForSentinelMode?: boolean | undefined;
  readonly failoverDetector?: boolean | undefined;
  readonly keepAlive?: number | undefined;
  readonly maxLoadingRetryTime?: number | undefined;
  readonly maxRetriesPerRequest?: number | null | undefined;
  readonly monitor?: boolean | undefined;
  readonly noDelay?: boolean | undefined;
  readonly offlineQueue?: boolean | undefined;
  readonly preferredSlaves?: unknown;
  readonly protocol?: unknown;
  readonly readOnly?: boolean | undefined;
  readonly reconnectOnError?: ((error: Error) => boolean | 1 | 2) | null | undefined;
  readonly replyMapping?: unknown;
  readonly retryStrategy?: ((times: number) => number | void | null) | null | undefined;
  readonly sentinelCommandTimeout?: number | undefined;
  readonly sentinelMaxConnections?: number | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly sentinelReconnectStrategy?: ((times: number) => number | void | null) | undefined;
  readonly sentinelRetryStrategy?: ((times: number) => number | void | null) | undefined;
  readonly sentinelTLS?: object | undefined;
  readonly sentinelUsername?: string | undefined;
  readonly socketTimeout?: number | undefined;
  readonly stringNumbers?: boolean | undefined;
  readonly updateSentinels?: boolean | undefined;
}

/** `ClusterOptions` of ioredis. */
export interface RedisClusterOptions extends RedisCommonOptions {
  readonly clusterNodeRetryStrategy?: ((times: number) => number | void | null) | null | undefined;
  readonly clusterRetryStrategy?:
    | ((times: number, reason?: Error) => number | void | null)
    | null
    | undefined;
  readonly dnsLookup?: unknown;
  readonly maxRedirections?: number | undefined;
  readonly redisOptions?: RedisClientOptions | undefined;
  readonly resolveSrv?: unknown;
  readonly retryDelayOnClusterDown?: number | undefined;
  readonly retryDelayOnFailover?: number | undefined;
  readonly retryDelayOnMoved?: number | undefined;
  readonly retryDelayOnTryAgain?: number | undefined;
  readonly scaleReads?: unknown;
  readonly shardedSubscribers?: boolean | undefined;
  readonly slotsRefreshInterval?: number | undefined;
  readonly slotsRefreshTimeout?: number | undefined;
  readonly useSRVRecords?: boolean | undefined;
}

/** A node of a Cluster: its address, its port on this machine, or host and port. */
export type RedisNode =
  | string
  | number
  | { readonly host?: string | undefined; readonly port?: number | undefined };

/** Where Redis is, in one of four ways. */
export interface RedisConnectionOptions {
  /** A client of yours. It is used as it is and never closed. */
  readonly client?: RedisClient | undefined;
  /** `redis://…` or `rediss://…`. */
  readonly url?: string | undefined;
  /** Options of ioredis (host, port, tls, sentinels and name, …), laid over ours. */
  readonly options?: RedisClientOptions | undefined;
  readonly cluster?:
    | { readonly nodes: readonly RedisNode[]; readonly options?: RedisClusterOptions | undefined }
    | undefined;
}
