import { type Field, Group, List, literal, Named, union } from '../common/schema.js';
import { DEFAULT_PERIOD, HotOptions, PolicyOptions } from '../limiter/policy-options.js';
import { LEAST_WIDTH, MOST_WIDTH } from '../local/hot-values.js';
import {
  AppOptions,
  ClusterOptions,
  DEFAULT_CLUSTER_ID,
  DEFAULT_MAX_COST,
  LocalOptions,
} from '../limiter/quota-options.js';
import {
  between,
  choice,
  duration,
  field,
  flag,
  group,
  name,
  named,
  rate,
  text,
  whole,
} from '../common/schema-fields.js';
import { RouteOptions, type PlainFields } from './route-policy.js';

const clusterDefaults = new ClusterOptions();
const appDefaults = new AppOptions();
const localDefaults = new LocalOptions();
const policyDefaults = new PolicyOptions();
const routeDefaults = new RouteOptions();

export const clusterSchema = group({
  id: field(
    name('a name of letters, digits and _ . -'),
    'Which cluster this is, if several share a store',
    DEFAULT_CLUSTER_ID,
  ),
  capacity: field(whole(), 'Tokens per second that the shared resource can take'),
  burstRatio: field(
    between(1, 100),
    "How much more than a second's capacity may be taken at once after a quiet time",
    clusterDefaults.burstRatio,
  ),
  reservedRatio: field(
    between(0, 0.2),
    'The part of the capacity that guarantees leave free, and that priority 0 is never kept from',
    clusterDefaults.reservedRatio,
  ),
  maxCost: field(
    whole(),
    'The most that one request may cost; buckets are at least this deep',
    DEFAULT_MAX_COST,
  ),
  pace: field(
    duration(),
    'While there is a shortage a process asks the store no more often than this',
    localDefaults.pace,
  ),
  leaseTtl: field(
    duration(),
    'After so long without a call the lease of a process is void',
    localDefaults.leaseTtl,
  ),
  syncInterval: field(
    duration(),
    'Consumption is reported at the latest after this…',
    localDefaults.syncInterval,
  ),
  batchThreshold: field(whole(), '…or after so many tokens', localDefaults.batchThreshold),
  reserveTarget: field(
    whole(),
    'A fixed stock of tokens in each process; without it, as much as demand asks for',
  ),
  refillThreshold: field(
    between(0, 1),
    'With a fixed stock: it is refilled at this part of it',
    localDefaults.refillThreshold,
  ),
});

const A_PRIORITY = '0, 1, 2 or 3';
const priority = union(
  A_PRIORITY,
  literal(A_PRIORITY, 0),
  literal(A_PRIORITY, 1),
  literal(A_PRIORITY, 2),
  literal(A_PRIORITY, 3),
);

export const appSchema = group({
  guaranteed: field(whole(), 'Tokens per second that are there whenever the app asks'),
  burst: field(whole(), 'Tokens per second that it never exceeds; without it, the guarantee'),
  burstDuration: field(
    duration(),
    'How long it takes until burst credit that was drawn on is whole again',
    appDefaults.burstDuration,
  ),
  priority: field(
    priority,
    'Who goes first when there is not enough: 0 before 1 before 2 before 3',
    appDefaults.priority,
  ),
  elastic: field(
    flag(),
    'What is beyond the guarantee is borrowed idle capacity, and spends no burst credit',
    appDefaults.elastic,
  ),
});

const figures = {
  rate: field(rate(), "Tokens per period, or both at once: '100/min'"),
  period: field(duration(), 'What the rate is counted in', DEFAULT_PERIOD),
  burst: field(
    whole(),
    'Tokens that a bucket holds; without it, the number in the rate. Not for sliding windows',
  ),
};

const tierSchema = union('a rate, or an object with rate, period or burst', rate(), group(figures));

const A_KEY = "'ip', 'user', 'route', 'global', { header }, { param }, or a list of these";

const A_PARAM = "the path of a value, such as 'query.q', or its place from 0 on";

const simpleKey = union(
  A_KEY,
  choice('ip', 'user', 'route', 'global'),
  new Group(A_KEY, { header: text('the name of a header') }),
  new Group(A_KEY, { param: union(A_PARAM, text(A_PARAM), whole(0)) }),
);

const keySchema = union(A_KEY, simpleKey, new List(A_KEY, simpleKey, { minItems: 1 }));

const A_PASS_THROUGH = "parts of tiers from 0 to 1, and a limit: { S: 0.8, limit: '20000/s' }";

const hotSchema = group({
  width: field(
    whole(LEAST_WIDTH, MOST_WIDTH),
    'Cells of a row of the table that counts, a power of two; more for more than a million requests a period',
    new HotOptions().width,
  ),
});

/** The compiler sees to it that every option of a policy that JSON can carry is here, with a value that the option takes. */
export const policySchema = group({
  algorithm: field(
    choice('token-bucket', 'leaky-bucket', 'sliding-window'),
    'How it counts',
    policyDefaults.algorithm,
  ),
  ...figures,
  mode: field(
    choice('policer', 'shaper'),
    'Leaky bucket: deny what is too much, or delay what fits into the bucket',
    policyDefaults.mode,
  ),
  maxDelay: field(duration(), 'Shaper: a request that would have to wait longer is denied'),
  subWindows: field(
    whole(2, 120),
    'Sliding window: into how many parts the period is cut',
    policyDefaults.subWindows,
  ),
  cost: field(whole(), 'Tokens that a request takes if it does not say', policyDefaults.cost),
  tiers: field(
    named(tierSchema, 'tiers'),
    'Other figures for some callers, by name: a rate, or rate, period and burst',
    policyDefaults.tiers,
  ),
  defaultTier: field(
    text('the name of a tier'),
    "The tier of requests that name none, or one that is not there; without it, the policy's own figures",
  ),
  scope: field(
    choice('fleet', 'node'),
    'One bucket per key for all processes, or each process by itself',
    policyDefaults.scope,
  ),
  sync: field(
    choice('auto', 'exact', 'leased'),
    'Token buckets on Redis: whether a process takes tokens of a key ahead and decides by itself',
    policyDefaults.sync,
  ),
  failureMode: field(
    choice('local', 'open', 'closed'),
    'While the store is away: each node its share, let all pass, or none',
    policyDefaults.failureMode,
  ),
  shadow: field(flag(), 'Count what would be denied, and let it pass', policyDefaults.shadow),
  maxWaiters: field(
    whole(),
    'How many `acquire` calls may wait for one key',
    policyDefaults.maxWaiters,
  ),
  hot: field(
    union('true, false, or an object with width', flag(), hotSchema),
    'Values that ask for less than a tenth of the limit pass without a bucket and without a call to the store',
    policyDefaults.hot,
  ),
  passThrough: field(
    new Named(A_PASS_THROUGH, union(A_PASS_THROUGH, between(0, 1), tierSchema)),
    "The part of a tier's excess that may pass, out of a bucket of limit: { S: 0.8, limit: '20000/s' }",
  ),
  adaptive: field(
    flag(),
    "With scope 'node': under load of this process a request costs up to twice as much",
    policyDefaults.adaptive,
  ),
  values: field(
    new Named('an object of tiers by value', text('the name of a tier')),
    'The tier of some values of the key, for requests that name none',
    policyDefaults.values,
  ),
  key: field(keySchema, `Whose tokens a request takes: ${A_KEY}`, routeDefaults.key),
  anonymous: field(
    keySchema,
    "With key 'user': the key of callers without a name",
    routeDefaults.anonymous,
  ),
  tier: field(text('the name of a tier'), 'The tier of all callers'),
  early: field(
    flag(),
    'HTTP: decided before all guards, also those that authenticate. For ip, header and global keys',
    routeDefaults.early,
  ),
} satisfies { readonly [Option in keyof PlainFields]-?: Field<PlainFields[Option]> });
