import { Redis } from 'ioredis';
import { SystemClock } from '../../lib/common/clock.js';
import { VersionedConfig } from '../../lib/config/versioned-config.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { RedisOrders } from '../../lib/stores/redis/redis-orders.js';
import { withRedis } from '../support/index.js';
import { limitOf, rateOf } from './fleet.js';
import { acknowledge, commandStand } from '../cli/weir-command.js';

// Somebody with access to Redis writes what the library would not. Processes keep what they had, and the
// command line says in a line what it makes of it.

const stand = commandStand();

const [CURRENT, HISTORY, ACKS, DEADLINES, ORDERS] = [
  ...['current', 'history', 'acks', 'ack-deadlines', 'orders'].map(
    (name) => `weir:{config}:${name}`,
  ),
] as [string, string, string, string, string];

const HUGE = 1e300;
const LEVELS = 100_000;
/** Stands for what is too deep for JSON.stringify, and not for JSON.parse. */
const DEEP = 'deep';
const DEEP_TEXT = `${'{"a":'.repeat(LEVELS)}1${'}'.repeat(LEVELS)}`;
const STAGED = { id: 1, by: 'eve', effectiveAtMs: 1, patch: {} };

type Fields = Record<string, unknown>;

/** Forged records, in the place of those that were written. */
const RECORDS: Readonly<Record<string, Fields>> = {
  'a time that no calendar has': { atMs: HUGE, effectiveAtMs: -HUGE },
  'times before all time': { atMs: -1, effectiveAtMs: -1 },
  'an update for a time that no calendar has': { staged: [{ ...STAGED, effectiveAtMs: HUGE }] },
  'an update for long ago': { staged: [{ ...STAGED, effectiveAtMs: -HUGE }] },
  'updates without end': {
    staged: Array.from({ length: 20_000 }, (_, id) => ({ ...STAGED, id, effectiveAtMs: 1e13 })),
  },
  'updates of one number, which is none': {
    staged: [0.5, -1, -1].map((id) => ({ ...STAGED, id, effectiveAtMs: 1e13 })),
  },
  'a patch that is deep': { patch: { policies: DEEP } },
  'an update that is deep': { staged: [{ ...STAGED, patch: DEEP }] },
  'a layer that is deep': {
    code: { '': { document: DEEP, version: null } },
  },
  'a prototype': { patch: JSON.parse('{"__proto__":{"rate":1},"constructor":{"a":1}}') as Fields },
  'layers of a prototype': {
    code: JSON.parse('{"__proto__":{"document":{"policies":{}},"version":1e300}}') as Fields,
  },
  'an update that is huge': { staged: [{ ...STAGED, patch: { a: 'x'.repeat(3e6) } }] },
  'names that are long': { by: 'x'.repeat(100_000), id: 'y'.repeat(100_000), kind: 'z'.repeat(9) },
  'a patch of another kind': { patch: { policies: [1, null, { a: 1 }], quota: 'all' } },
};

const ACKNOWLEDGEMENTS: readonly unknown[] = [
  ...[null, 1, 'text', [], {}],
  { node: 'n', revision: HUGE, atMs: HUGE },
  { node: 'n', revision: -1, atMs: -HUGE, status: 5, about: 'x', reason: { a: 1 } },
  { node: 'n', revision: 1, atMs: 1, resources: [null, 1, {}], warms: [null, { a: 1 }] },
  { node: 'n', revision: 1, atMs: 1, resources: [[[]]], service: { toString: 1 } },
  { node: 'x'.repeat(100_000), revision: 1, atMs: 1, status: 'refused', reason: null },
];

const ORDER = { id: 1, kind: 'warm', by: 'eve', atMs: 1, untilMs: 8e15 };
const CLAIM = { node: 'n', untilMs: 8e15, atMs: 1, result: null };
const FORGED_ORDERS: Readonly<Record<string, unknown>> = {
  '1': ORDER,
  '1/foo': { ...CLAIM, atMs: HUGE },
  '1/shop': { ...CLAIM, result: { warmed: 'all', error: 5 } },
  '1/bar': { ...CLAIM, result: { warmed: [null, 1, { resource: {} }] } },
  '1/baz': { ...CLAIM, result: [] },
  '2': { ...ORDER, id: -HUGE, atMs: -HUGE },
  '2/': CLAIM,
  '99999999999999999999': { ...ORDER, id: 0.5 },
  next: 'many',
};

const COMMANDS = [
  ['config', 'get'],
  ['config', 'history'],
  ['config', 'staged'],
  ['config', 'cancel', '7'],
  ['config', 'rollback', '1'],
  ['config', 'set', 'policies.api.rate', '7'],
  ['status'],
  ['degrade', 'force', 'db', '2'],
  ['warm', '--timeout', '1'],
];

const admin = <T>(work: (client: Redis) => Promise<T>): Promise<T> =>
  withRedis(stand.redis.port, work);

async function everyCommandEnds(): Promise<void> {
  for (const args of COMMANDS) {
    for (const format of [[], ['--json']]) {
      const { code, out, err } = await stand.weir(...args, ...format);
      expect([0, 1, 2]).toContain(code);
      // Faults of ours would be told in the words of JavaScript.
      expect([args, out + err]).toEqual([
        args,
        expect.not.stringMatching(
          /^ +at |TypeError|RangeError|Invalid time|is not a function|Cannot read|call stack/m,
        ),
      ]);
    }
  }
}

async function withProcess(
  work: (config: VersionedConfig, look: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const client = new Redis(stand.redis.url);
  const clock = new SystemClock();
  const store = new RedisConfig({ client, prefix: 'weir', timeoutMs: 5000 }, clock);
  const errors: string[] = [];
  const config = new VersionedConfig({
    ...{ store, nodeId: 'a', clock, pollMs: 3_600_000, code: { document: limitOf(100) } },
    report: { info: () => {}, warn: () => {}, error: (text) => errors.push(text) },
  });
  await config.start();
  try {
    await work(config, async () => {
      await config.nodes();
      await config.history();
    });
    expect(errors.join('\n')).not.toMatch(/^ +at |TypeError|RangeError|Invalid time|call stack/m);
  } finally {
    await config.close();
    client.disconnect();
  }
}

async function forge(fields: Fields): Promise<void> {
  await admin(async (client) => {
    const text = (await client.hget(CURRENT, 'current'))!;
    const forged = JSON.stringify({ ...(JSON.parse(text) as Fields), ...fields }).replace(
      `"${DEEP}"`,
      DEEP_TEXT,
    );
    await client.hset(CURRENT, { id: 'forged', current: forged, previous: forged });
    await client.lset(HISTORY, 0, forged);
  });
}

describe('a forged record with', () => {
  it.each(Object.keys(RECORDS))('%s leaves processes with what they had', async (name) => {
    await withProcess(async (config, look) => {
      await config.update(limitOf(200));
      await forge(RECORDS[name]!);
      await look();
      await config.update({ policies: { other: { rate: '1/s' } } }).catch(() => undefined);
      expect(rateOf(config.current())).toMatch(/^[12]00\/s$/);
    });
    // A process that starts now has nothing better, and starts all the same.
    await withProcess((_, look) => look());
  });

  it.each(Object.keys(RECORDS))('%s is told of by every command', async (name) => {
    await stand.weir('config', 'set', '--new', 'policies.api.rate', '5');
    await forge(RECORDS[name]!);
    await everyCommandEnds();
  });
});

it('forged acknowledgements and orders are told of by every command', async () => {
  await stand.weir('config', 'set', '--new', 'policies.api.rate', '5');
  await acknowledge(stand.redis.url, { node: 'real', revision: 1, status: 'applied' });
  await admin(async (client) => {
    for (const [i, ack] of ACKNOWLEDGEMENTS.entries()) {
      await client.hset(ACKS, `n${i}`, JSON.stringify(ack));
      await client.zadd(DEADLINES, '+inf', `n${i}`);
    }
    for (const [field, value] of Object.entries(FORGED_ORDERS)) {
      await client.hset(ORDERS, field, JSON.stringify(value));
    }
  });
  await everyCommandEnds();
  await withProcess((_, look) => look());
  await admin(async (client) => {
    const store = { client, prefix: 'weir', timeoutMs: 5000 };
    const { orders } = await new RedisOrders(store, new SystemClock()).read();
    expect(orders.length).toBeGreaterThan(0);
  });
});

it.each([CURRENT, HISTORY, ACKS, DEADLINES, ORDERS])(
  'a key of another type is told of by every command: %s',
  async (key) => {
    await stand.weir('config', 'set', '--new', 'policies.api.rate', '5');
    await admin(async (client) => {
      await client.del(key);
      await client.set(key, 'x'.repeat(1000));
    });
    await everyCommandEnds();
  },
);
