export { stopAll } from './processes.js';
export { infoField, withRedis } from './redis-client.js';
export {
  RedisCluster,
  startRedisCluster,
  type NodeAddress,
  type RedisClusterOptions,
} from './redis-cluster.js';
export { startPrimaryWithReplica, type ReplicatedRedis } from './redis-replication.js';
export { startSentinel, type RedisSentinels } from './redis-sentinel.js';
export { RedisProcess, startRedis, type RedisConfig, type RedisOptions } from './redis-server.js';
export { RespSplitter, type RespMessage } from './resp-splitter.js';
export { TcpProxy, startProxy, type ProxyStats } from './tcp-proxy.js';
export { until, type UntilOptions } from './until.js';
