import { type Limit } from '../algorithms/limit.js';
import { IPV6_BITS, LEAST_IPV6_BITS } from '../common/address.js';
import { newIncarnation } from '../common/ids.js';
import { type ConfigDocument, type PolicyDocument } from '../config/schema/document.schema.js';
import { limitsOf } from '../config/schema/limits-of.js';
import { limitId } from '../limiter/bound-limit.js';
import { type Decision } from '../limiter/decision.js';
import { givenLimit, type LimitInput } from '../limiter/given-limits.js';
import { checkPolicy, type PolicySettings } from '../limiter/policy-options.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { createRateLimiter } from '../limiter/create-rate-limiter.js';
import { namedKey } from '../limits/named-key.js';
import { RedisKeys } from '../stores/redis/keys.js';
import { leasedTokens } from '../stores/redis/leased-tokens.js';
import {
  asJson,
  UsageError,
  DONE,
  type Command,
  type Output,
  CommandFailedError,
} from './command.js';
import { readArguments, wholeOption, FLAG, TEXT } from './arguments.js';
import { noPolicy } from './meant.js';
import {
  STORE_HELP,
  STORE_OPTIONS,
  withStore,
  type OpenStore,
  type StoreValues,
} from './store-options.js';
import { documentIn, readStored } from './stored-config.js';
import { table } from './table.js';

const KEY_OPTIONS = {
  ...STORE_OPTIONS,
  raw: FLAG,
  'ipv6-prefix': TEXT,
  limit: { type: 'string', multiple: true },
} as const;

const KEY_HELP: readonly string[] = [
  '--limit RATE[:BURST]  also the tokens under these figures, which the code gave as a value (100/min:20);',
  '                  may be given several times',
  '--ipv6-prefix BITS  how much of an IPv6 address names a caller: `ipv6Prefix` of the module (default: 64)',
  '--raw             KEY is the key as the limiter has it: as decisions and your key function give it',
  ...STORE_HELP,
];

const MORE: readonly string[] = [
  "KEY is whose tokens are meant: an address for a policy by 'ip', a name for one by 'user' (an address for",
  'callers without one, user:ADDRESS for a user of that name), and for a list of keys as many words as it',
  'has.',
];

/** A tier of the policy, or figures in the place of one. */
interface AskedLimit {
  /** The limit as it is shown. */
  readonly shown: string;
  /** The limit as the limiter is asked for it. */
  readonly ask: { readonly tier: string } | { readonly limit: LimitInput };
  /** The id of its buckets in the store. */
  readonly id: string;
  readonly limit: Limit;
}

/** The content of a bucket. */
interface TierState {
  readonly tier: string;
  /** Whether anything is kept of it; else it is as full as it can be. */
  readonly inUse: boolean;
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Tokens that processes hold at the moment to decide by themselves. */
  readonly leased: number;
  readonly retryAfterMs: number;
  readonly resetMs: number;
}

export const keyGet: Command = {
  name: 'key get',
  takes: 'POLICY KEY…',
  about: 'show what is left of the tokens of a key, for each tier of the policy',
  options: KEY_HELP,
  more: MORE,
  run: (args, output) =>
    ofKey(args, async (query) => {
      const tiers = await stateOf(query);
      tell(query, tiers, output);
      return DONE;
    }),
};

export const keyReset: Command = {
  name: 'key reset',
  takes: 'POLICY KEY…',
  about: 'have a key start anew, with all its tokens, in every tier',
  options: KEY_HELP,
  more: MORE,
  run: (args, output) =>
    ofKey(args, async (query) => {
      const { limiter, policy, key, limits, isJson } = query;
      for (const { ask } of limits) await limiter.reset({ policy: policy.name, key, ...ask });
      if (isJson) output.log(asJson({ policy: policy.name, key, reset: true }));
      else output.log(`policy ${policy.name}, key ${key}: starts anew\n${FOLLOW}`);
      return DONE;
    }),
};

const FOLLOW = 'processes that remember a denial, or hold tokens of it, follow within two seconds';

interface KeyQuery {
  readonly store: OpenStore;
  readonly limiter: RateLimiter;
  readonly policy: PolicySettings;
  readonly key: string;
  readonly limits: readonly AskedLimit[];
  readonly isJson: boolean;
}

async function ofKey(
  args: readonly string[],
  work: (query: KeyQuery) => Promise<number>,
): Promise<number> {
  const { values, words } = readArguments(args, KEY_OPTIONS, [2, Infinity], 'POLICY or KEY');
  const [name, ...parts] = words as [string, ...string[]];
  const bits = wholeOption('ipv6-prefix', values['ipv6-prefix'], LEAST_IPV6_BITS, IPV6_BITS);
  return withStore(values as StoreValues, async (store) => {
    const record = await readStored(store.config);
    const document = documentIn(record);
    const policy = policyIn(document, name, store.prefix);
    const key = values.raw ? rawKey(parts) : keyOf(document.policies![name]!, name, parts, bits);
    const limits = limitsAsked(policy, values.limit ?? []);
    const { client } = store.connection;
    const nodeId = `weir-${newIncarnation()}`;
    const limiter = createRateLimiter({
      store: { type: 'redis', client, prefix: store.prefix, decisionTimeout: TIMEOUT },
      nodeId,
    });
    // With their revision: a bucket that nobody has used since a change is told by the limits in force.
    limiter.prepare({ revision: record?.revision ?? 0, policies: limitsOf(document).policies })();
    try {
      await limiter.ready();
      return await work({ store, limiter, policy, key, limits, isJson: values.json ?? false });
    } finally {
      await limiter.close();
      // A tool that only looks is no node that shares the limits.
      await client.zrem(new RedisKeys(store.prefix).nodes(), nodeId);
    }
  });
}

const TIMEOUT = '5s';

function policyIn(document: ConfigDocument, name: string, prefix: string): PolicySettings {
  const { policies } = limitsOf(document);
  const known = Object.keys(policies);
  if (!Object.hasOwn(policies, name)) throw unknownPolicy(document, name, known, prefix);
  const policy = checkPolicy(name, policies[name]!);
  if (policy.scope !== 'node') return policy;
  throw new CommandFailedError(
    `policy '${name}' is of scope 'node': every process counts by itself, and nothing of it is in Redis`,
  );
}

function unknownPolicy(
  { apps = {} }: ConfigDocument,
  name: string,
  known: readonly string[],
  prefix: string,
): CommandFailedError {
  if (Object.hasOwn(apps, name)) {
    const words = `'${name}' is an app: a quota has no keys; weir status shows what it holds`;
    return new CommandFailedError(words);
  }
  return noPolicy(name, known, prefix);
}

function rawKey(parts: readonly string[]): string {
  if (parts.length === 1 && parts[0] !== '') return parts[0]!;
  throw new UsageError('With --raw, KEY is one word.');
}

/** The key, made as the guard makes it. */
function keyOf(
  { key }: PolicyDocument,
  policy: string,
  words: readonly string[],
  ipv6Prefix: number | undefined,
): string {
  const found = namedKey(key, words, ipv6Prefix);
  if (found !== undefined) return found;
  const wanted = Array.isArray(key) && key.length > 1 ? `${key.length} words` : 'one word';
  throw new UsageError(`The key of policy '${policy}' is ${wanted}; got ${words.length}.`);
}

function limitsAsked(policy: PolicySettings, values: readonly string[]): AskedLimit[] {
  const tiers = [...policy.limits].map(([tier, limit]) => ({
    ...{ shown: tier, ask: { tier }, id: limitId(policy, tier, limit), limit },
  }));
  const given = values.map((shown) => {
    const figures = figuresIn(shown);
    const { limit, name } = givenLimit(policy, figures);
    return { shown, ask: { limit: figures }, id: limitId(policy, name, limit), limit };
  });
  return [...tiers, ...given];
}

function figuresIn(text: string): LimitInput {
  const [, rate, burst] = /^([^:]+)(?::(\d{1,15}))?$/.exec(text) ?? [];
  if (rate === undefined) {
    throw new UsageError(`--limit must be RATE or RATE:BURST, such as 100/min:20; got '${text}'.`);
  }
  return {
    rate: /^\d+(\.\d+)?$/.test(rate) ? Number(rate) : rate,
    ...(burst !== undefined && { burst: Number(burst) }),
  };
}

async function stateOf({ store, limiter, policy, key, limits }: KeyQuery): Promise<TierState[]> {
  const names = new RedisKeys(store.prefix);
  const states: TierState[] = [];
  for (const { shown, ask, id, limit } of limits) {
    const decision: Decision = await limiter.peek({ policy: policy.name, key, ...ask });
    if (decision.source !== 'store') throw new CommandFailedError('Redis did not answer in time');
    const shared = { id, figures: limit, revision: 0 };
    const raw = await store.connection.client.getBuffer(names.bucket(shared, key));
    const { allowed, limit: most, remaining, retryAfterMs, resetMs, timestampMs } = decision;
    const leased = raw === null ? 0 : leasedTokens(raw, limit, timestampMs * 1000);
    states.push({
      ...{ tier: shown, inUse: raw !== null, allowed, limit: most, remaining, leased },
      ...{ retryAfterMs, resetMs },
    });
  }
  return states;
}

function tell(
  { policy, key, isJson }: KeyQuery,
  tiers: readonly TierState[],
  output: Output,
): void {
  if (isJson) return output.log(asJson({ policy: policy.name, key, tiers }));
  output.log(`policy ${policy.name}, key ${key}`);
  const rows = tiers.map(({ tier, inUse, limit, remaining, leased, retryAfterMs, resetMs }) => [
    ...[tier, inUse ? 'yes' : 'no', limit, remaining, leased],
    ...[retryAfterMs / 1000, resetMs / 1000],
  ]);
  output.log(table(['tier', 'in use', 'of', 'left', 'leased', 'retry after s', 'full in s'], rows));
}
