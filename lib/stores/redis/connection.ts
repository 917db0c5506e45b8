import type * as Ioredis from 'ioredis';
import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { type Clock } from '../../common/clock.js';
import {
  InvalidArgumentError,
  StoreTimeoutError,
  StoreUnavailableError,
} from '../../common/errors.js';
import { jitterUp } from '../../common/jitter.js';
import { withoutUndefined } from '../../common/validate.js';
import { optionalPackage } from '../optional-package.js';
import { type RedisClient, type RedisConnectionOptions } from '../redis-options.js';
import { wireOf } from './wire.js';

/** `driver` is for tests: what takes the place of ioredis where we open the connection. */
export type RedisConnectionSettings = RedisConnectionOptions & { readonly driver?: RedisDriver };

/** The part of ioredis that opens connections. */
export type RedisDriver = Pick<typeof Ioredis, 'Redis' | 'Cluster'>;

export interface RedisConnection {
  readonly client: Redis | Cluster;
  readonly isCluster: boolean;
  /** True if we opened it, and so have to close it. */
  readonly owned: boolean;
  /** The latest error of the client while it could not connect. */
  lastError: Error | undefined;
}

const FIRST_RECONNECT_MS = 50;
/** With its jitter, and the 1.25 s after which a silent connection is given up at the latest, less than 2 s. */
const LONGEST_RECONNECT_MS = 500;
const CONNECT_TIMEOUT_MS = 1000;
export const DISCONNECT_TIMEOUT_MS = 100;

const AN_ADDRESS = "an address such as 'redis://localhost:6379'";

export function connectRedis(
  options: RedisConnectionSettings,
  random: () => number = Math.random,
): RedisConnection {
  const { client, cluster } = options;
  const ways = [client, options.url ?? options.options, cluster].filter((way) => way !== undefined);
  if (ways.length !== 1) {
    const given = Object.keys(withoutUndefined(options));
    const expectation = 'exactly one of client, cluster, or url and/or options';
    const got = given.length === 0 ? 'none of them' : given.join(' and ');
    const message = `store: expected ${expectation}, got ${got}`;
    throw new InvalidArgumentError('store', given, expectation, message);
  }
  if (client !== undefined) return useClient(client);
  if (options.url === '') {
    throw new InvalidArgumentError('store.url', '', AN_ADDRESS);
  }
  const ioredis = options.driver ?? optionalPackage<typeof Ioredis>('ioredis', 'the redis store');
  if (cluster !== undefined) {
    if (!Array.isArray(cluster.nodes) || cluster.nodes.length === 0) {
      throw new InvalidArgumentError('store.cluster.nodes', cluster.nodes, 'at least one node');
    }
    const ofCluster = clusterOptions(cluster.options as ClusterOptions | undefined, random);
    return watch(new ioredis.Cluster(cluster.nodes as ClusterNode[], ofCluster), true);
  }
  const redisOptions = { ...failFast(random), ...(options.options as RedisOptions | undefined) };
  return watch(opened(ioredis, options.url, redisOptions), false);
}

function opened({ Redis }: RedisDriver, url: string | undefined, options: RedisOptions): Redis {
  if (url === undefined) return new Redis(options);
  try {
    return new Redis(url, options);
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_INVALID_URL') throw error;
    // Neither the error nor its value: the address may have a password.
    throw new InvalidArgumentError('store.url', undefined, AN_ADDRESS);
  }
}

function useClient(given: RedisClient): RedisConnection {
  if (typeof given?.defineCommand !== 'function') {
    throw new InvalidArgumentError('store.client', given, 'a client of ioredis');
  }
  const client = given as Redis | Cluster;
  return { client, isCluster: 'nodes' in client, owned: false, lastError: undefined };
}

/**
 * A decision is worth nothing after its deadline, so nothing is queued while there is no
 * connection; and a take that may have been carried out is never sent twice.
 */
function failFast(random: () => number): RedisOptions {
  return {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // On a connection that is gone already, closing it would keep the process for this long.
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    // A sentinel may go silent, too.
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (attempt) => reconnectDelayMs(attempt, random),
    // After a failover the old primary is read-only: look for the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}

function clusterOptions(own: ClusterOptions | undefined, random: () => number): ClusterOptions {
  return {
    // Nothing is sent while the cluster is not ready, so only calls to a master to which the
    // connection is being made are queued; refusing those would make a failover of each new one.
    enableOfflineQueue: true,
    clusterRetryStrategy: (attempt) => reconnectDelayMs(attempt, random),
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshInterval: CONNECT_TIMEOUT_MS,
    ...own,
    redisOptions: { ...failFast(random), ...own?.redisOptions },
  };
}

export function reconnectDelayMs(attempt: number, random: () => number = Math.random): number {
  const delay = Math.min(FIRST_RECONNECT_MS * 2 ** (attempt - 1), LONGEST_RECONNECT_MS);
  return jitterUp(delay, random());
}

/** The store's switch events carry the error; ioredis would print it for each attempt. */
function watch(client: Redis | Cluster, isCluster: boolean): RedisConnection {
  const connection: RedisConnection = { client, isCluster, owned: true, lastError: undefined };
  wireOf(client).isOurs = true;
  client.on('error', (error: Error) => (connection.lastError = error));
  client.on('ready', () => (connection.lastError = undefined));
  restAtEnd(client);
  return connection;
}

/** A Cluster that is closed while it looks for its masters looks again and again (ioredis 5), and the process never ends. */
export function restAtEnd(client: Redis | Cluster): void {
  if (!('refreshSlotsCache' in client)) return;
  client.once('end', () => (client.refreshSlotsCache = () => {}));
}

/**
 * The wait for a client's connection. It has one listener for all that wait: a connection that never
 * comes must not gather them.
 */
export class ConnectionWait {
  /** The latest error of the client during the wait; only if errors are kept. */
  lastError: Error | undefined;
  private ready: Promise<void> | undefined;
  private readonly keepError = (error: Error): void => void (this.lastError = error);

  constructor(
    private readonly client: Redis | Cluster,
    /** A client whose errors have a listener no longer prints them. */
    private readonly errors: 'kept' | 'left alone' = 'left alone',
  ) {}

  whenReady(): Promise<void> {
    const { client } = this;
    this.ready ??= new Promise((resolve) => {
      if (this.errors === 'kept') client.on('error', this.keepError);
      client.once('ready', () => {
        this.stop();
        this.ready = this.lastError = undefined;
        resolve();
      });
    });
    return this.ready;
  }

  /** Listens to errors no longer. */
  stop(): void {
    this.client.off('error', this.keepError);
  }
}

/** The answer to a command, or an error of ours, at the latest when the time is up. */
export async function withTimeout<T>(
  command: Promise<T>,
  timeoutMs: number,
  clock: Pick<Clock, 'after' | 'soon'>,
  why: () => Error | undefined = () => undefined,
): Promise<T> {
  let cancel = (): void => {};
  const late = new Promise<never>((_, reject) => {
    // After a stall of this process the reply may be here already, and gets its turn first.
    const giveUp = (): void => reject(new StoreTimeoutError(timeoutMs, why()));
    cancel = clock.after(timeoutMs, () => clock.soon(giveUp));
  });
  try {
    return await Promise.race([command, late]);
  } catch (error) {
    if (error instanceof StoreUnavailableError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreUnavailableError(reason, { cause: error });
  } finally {
    cancel();
  }
}
