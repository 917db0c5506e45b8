import { unescape } from 'node:querystring';
import { SystemClock } from '../common/clock.js';
import { StoreUnavailableError, withoutSecrets } from '../common/errors.js';
import { UsageError } from './command.js';
import { RedisStoreOptions } from '../limiter/options.js';
import {
  connectRedis,
  type RedisConnection,
  type RedisConnectionSettings,
} from '../stores/redis/connection.js';
import { RedisConfig } from '../stores/redis/redis-config.js';
import { FLAG, TEXT } from './arguments.js';

/** Where the fleet keeps what it shares. */
export const STORE_OPTIONS = {
  url: TEXT,
  prefix: TEXT,
  'redis-cluster': FLAG,
  json: FLAG,
} as const;

export const STORE_HELP: readonly string[] = [
  '--url URL         where Redis is (default: $REDIS_URL, or redis://127.0.0.1:6379)',
  '--prefix NAME     what its keys begin with (default: weir)',
  '--redis-cluster   the address is that of a node of a Redis Cluster',
  '--json            for machines',
];

export interface StoreValues {
  readonly url?: string;
  readonly prefix?: string;
  readonly 'redis-cluster'?: boolean;
}

export interface OpenStore {
  readonly connection: RedisConnection;
  readonly prefix: string;
  readonly config: RedisConfig;
  readonly clock: SystemClock;
}

export const prefixOf = ({ prefix }: StoreValues): string =>
  prefix ?? new RedisStoreOptions().prefix;

const TIMEOUT_MS = 5000;
/** Short, as a person waits at a terminal; a Redis that has accepted the connection may take `TIMEOUT_MS`. */
const CONNECT_TIMEOUT_MS = 2000;

/** Opens the store, does the work and closes it again, whatever comes of it. */
export async function withStore<T>(
  values: StoreValues,
  work: (store: OpenStore) => Promise<T>,
): Promise<T> {
  const url = values.url ?? process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
  const prefix = prefixOf(values);
  mustBeAddress(url);
  const connection = connect(url, values['redis-cluster'] ?? false);
  const clock = new SystemClock();
  const { client } = connection;
  let config: RedisConfig | undefined;
  try {
    const timeouts = { timeoutMs: TIMEOUT_MS, connectTimeoutMs: CONNECT_TIMEOUT_MS };
    config = new RedisConfig({ client, prefix, ...timeouts }, clock);
    return await work({ connection, prefix, config, clock });
  } catch (error) {
    throw error instanceof StoreUnavailableError ? unreachable(url, connection, error) : error;
  } finally {
    await config?.close();
    client.disconnect();
  }
}

/** The client takes nearly every text for the name of a host or a file. */
function mustBeAddress(url: string): void {
  if (/^rediss?:\/\/./.test(url) && URL.canParse(url)) return;
  throw new UsageError(
    `The address must be like redis://127.0.0.1:6379 or rediss://…; got '${shown(url)}'.`,
  );
}

/** All that stands before the host may be a password, with spaces in it or without `//` before it. */
function shown(url: string): string {
  const [scheme = ''] = /^\w+:\/\//.exec(url) ?? [];
  return withoutSecrets(url.includes('@') ? scheme + url.slice(url.lastIndexOf('@') + 1) : url);
}

function connect(url: string, isCluster: boolean): RedisConnection {
  return connectRedis(isCluster ? { cluster: clusterAt(url) } : { url });
}

/** The settings in the address of one node hold for all of them. */
export function clusterAt(url: string): NonNullable<RedisConnectionSettings['cluster']> {
  const { protocol, hostname, port, username, password } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const redisOptions = {
    ...(username !== '' && { username: unescape(username) }),
    ...(password !== '' && { password: unescape(password) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  };
  return { nodes: [{ host, port: Number(port || 6379) }], options: { redisOptions } };
}

/** The connection's own error is more use than a timeout. */
function unreachable(url: string, { lastError }: RedisConnection, error: Error): Error {
  const why = lastError?.message || error.message.replace(/^store unavailable: /, '');
  return new StoreUnavailableError(`${shown(url)}: ${why}${hintTo(why)}`, {
    cause: error,
  });
}

function hintTo(why: string): string {
  if (/^(MOVED|ASK) /.test(why)) return '; it is a Redis Cluster: add --redis-cluster';
  if (/^NOAUTH /.test(why)) return '; it wants a password: redis://:PASSWORD@HOST:PORT';
  return '';
}
