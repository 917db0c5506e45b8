import { type Clock } from '../common/clock.js';
import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError, UnknownOptionError } from '../common/errors.js';
import {
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../common/validate.js';
import { type RedisDriver } from '../stores/redis/connection.js';
import { type RedisConnectionOptions } from '../stores/redis-options.js';
import { type ByPolicyName } from './policy-names.js';
import { type PolicyInput } from './policy-options.js';
import { type QuotaOptions } from './quota-options.js';
import { type AcquireOptions } from './rate-limiter.js';

/** V8 cannot hold more entries than this in one map, with room to spare. */
const MOST_KEYS = 10_000_000;

/** Buckets in this process. The initial values are the defaults. */
export class MemoryStoreOptions {
  readonly type = 'memory' as const;
  /** How many keys get a bucket of their own; further ones share (docs/options.md#memory-store). */
  maxKeys = 1_000_000;
  /** A bucket that is full again and was not used for longer than this is forgotten. */
  idleTimeout: Duration = '5m';
  /** How often such buckets are looked for; a large number of keys is gone through in 60 steps. */
  sweepInterval: Duration = '1s';
}

/** Buckets in Redis, shared by all processes that use the same prefix. */
export class RedisStoreOptions implements RedisConnectionOptions {
  readonly type = 'redis' as const;
  client?: RedisConnectionOptions['client'];
  url?: RedisConnectionOptions['url'];
  options?: RedisConnectionOptions['options'];
  cluster?: RedisConnectionOptions['cluster'];
  /** Tests only. @internal */
  driver?: RedisDriver;
  /** First part of every key. Fleets that share a Redis but no limits need different ones. */
  prefix = 'weir';
  /** A decision that Redis has not made by then follows the policy's failure mode. */
  decisionTimeout: Duration = '20ms';
  /** Most checks that travel in one script call. Several calls may be on their way at once. */
  maxBatch = 64;
  /** As for the memory store, for buckets kept in process (node scope, fallback); and as many
   * denials are remembered for each policy and tier. */
  maxKeys = 1_000_000;
  idleTimeout: Duration = '5m';
  sweepInterval: Duration = '1s';
}

/** Where shared state lives, as options have it. */
export type StoreInput =
  | 'memory'
  | ({ type: 'memory' } & Partial<Omit<MemoryStoreOptions, 'type'>>)
  | ({ type: 'redis' } & Partial<Omit<RedisStoreOptions, 'type'>>);

/** Options of `createRateLimiter`. */
export interface RateLimiterOptions {
  /** The rules, by name. */
  policies?: ByPolicyName<PolicyInput>;
  /** Where buckets live. Default: in this process. */
  store?: StoreInput;
  /** The shares that apps have of a cluster's capacity. */
  quota?: QuotaOptions;
  /** The name of this process in the fleet. Default: host, process id and a random part. */
  nodeId?: string;
  /** The source of time; tests bring their own. */
  clock?: Clock;
}

const KNOWN_LIMITER = ['policies', 'quota', 'store', 'nodeId', 'clock'];
const KNOWN_MEMORY = Object.keys(new MemoryStoreOptions());
const KNOWN_REDIS = [
  ...Object.keys(new RedisStoreOptions()),
  'client',
  'url',
  'options',
  'cluster',
];

export function checkStore(input: StoreInput = 'memory'): MemoryStoreOptions | RedisStoreOptions {
  if (typeof input === 'string' && /^rediss?:/.test(input)) {
    // Its value is not repeated: it may have a password.
    const expectation = "an object, { type: 'redis', url: 'redis://…' }";
    throw new InvalidArgumentError('store', undefined, expectation);
  }
  // Redis by its name alone would still have to be found.
  const isName = typeof input === 'string' && (input as string) !== 'redis';
  const given = (isName ? { type: input } : input) as Exclude<StoreInput, string>;
  plainObject('store', given, "'memory', or an object like { type: 'redis', url: 'redis://…' }");
  oneOf('store.type', given.type, ['memory', 'redis']);
  const isRedis = given.type === 'redis';
  // The driver is for tests: it is taken, but nobody is told of it.
  const listed: Partial<RedisStoreOptions> | Partial<MemoryStoreOptions> = { ...given };
  if ('driver' in listed && isRedis) delete listed.driver;
  if (isRedis) checkAddress(listed as Partial<RedisStoreOptions>);
  rejectUnknown('store', listed, isRedis ? KNOWN_REDIS : KNOWN_MEMORY);
  const defaults = isRedis ? new RedisStoreOptions() : new MemoryStoreOptions();
  const options = Object.assign(defaults, withoutUndefined(given));
  wholeAbove0('store.maxKeys', options.maxKeys, MOST_KEYS);
  durationMs(options.idleTimeout, 'store.idleTimeout');
  durationMs(options.sweepInterval, 'store.sweepInterval');
  if (options.type === 'redis') {
    wholeAbove0('store.maxBatch', options.maxBatch, 1000);
    durationMs(options.decisionTimeout, 'store.decisionTimeout');
  }
  return options;
}

/** Where Redis is, in words that are not ours or have no value. */
function checkAddress(given: Partial<RedisStoreOptions>): void {
  const foreign = OF_IOREDIS.find((name) => Object.hasOwn(given, name));
  if (foreign !== undefined) {
    const hint = ` options of ioredis stand in 'options': { type: 'redis', options: { ${foreign}: … } };`;
    throw new UnknownOptionError(`store.${foreign}`, KNOWN_REDIS, hint);
  }
  const { url, client, options, cluster } = given;
  if ('url' in given && (url ?? client ?? options ?? cluster) === undefined) {
    const expectation = "an address such as 'redis://localhost:6379'";
    const message = `store.url: expected ${expectation}, got undefined: is the variable set that it comes from?`;
    throw new InvalidArgumentError('store.url', undefined, expectation, message);
  }
}

/** Options of ioredis that people write beside `type` at first. */
const OF_IOREDIS = ['host', 'port', 'username', 'password', 'db', 'tls', 'sentinels', 'name'];

export function checkLimiterOptions(options: RateLimiterOptions): void {
  plainObject('options', options, 'an object');
  rejectUnknown('options', options, KNOWN_LIMITER);
  const { policies, nodeId } = options;
  if (policies !== undefined) plainObject('policies', policies, 'an object of policies by name');
  if (nodeId !== undefined && (typeof nodeId !== 'string' || nodeId === '')) {
    throw new InvalidArgumentError('nodeId', nodeId, 'a text that is not empty');
  }
}

/** Without a timeout that is none. */
export function checkAcquireOptions(options: AcquireOptions): AcquireOptions {
  plainObject('options', options, 'an object with timeoutMs and/or signal');
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal)) {
    throw new InvalidArgumentError('signal', options.signal, 'an AbortSignal');
  }
  const timeoutMs = options.timeoutMs === Infinity ? undefined : options.timeoutMs;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
    throw new InvalidArgumentError('timeoutMs', timeoutMs, 'a number of milliseconds from 0 on');
  }
  return { ...options, timeoutMs };
}
