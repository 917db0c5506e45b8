import { Redis } from 'ioredis';
import {
  createRateLimiter,
  type Decision,
  type PolicyInput,
  type RateLimiter,
  type RateLimiterStats,
} from 'nestjs-weir';
import { type LeaseGrant } from '../../lib/algorithms/leased-bucket.js';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisStore } from '../../lib/stores/redis/redis-store.js';
import { CallKind } from '../../lib/stores/remote-store.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { now, together } from '../support/limiters.js';
import { compileLimit } from '../support/limits.js';

const K = { policy: 'p', key: 'k' };
const LEASE_TTL_MS = 1000;

type Counters = RateLimiterStats['policies'][string];

function countersOf(limiter: RateLimiter): Counters {
  return limiter.stats().policies.p!;
}

/** Tokens that are just on their way back are seen neither here nor there, for a moment. */
async function hasLeft(limiter: RateLimiter, tokens: number): Promise<void> {
  const isSo = async (): Promise<boolean> => (await limiter.peek(K)).remaining === tokens;
  await until(isSo, { what: `${tokens} tokens to be left` });
}

/** Says how many requests each limiter gets in this turn of the event loop. */
type Load = (elapsedMs: number, sent: number) => number;

const perTurn =
  (count: number): Load =>
  () =>
    count;

/** Keeps up with the rate on a busy machine too. */
const perMs =
  (rate: number): Load =>
  (elapsedMs, sent) =>
    Math.ceil(elapsedMs * rate) - sent;

/** Requests for one key to each of the limiters, for so long. */
async function hammer(limiters: readonly RateLimiter[], ms: number, load: Load): Promise<Hammered> {
  const startMs = performance.now();
  const answers: (Decision | Promise<Decision>)[] = [];
  const turns: number[] = [];
  for (let sent = 0, elapsedMs = 0; elapsedMs < ms; elapsedMs = performance.now() - startMs) {
    const count = load(elapsedMs, sent);
    sent += count;
    turns.push(elapsedMs);
    for (const limiter of limiters) {
      for (let i = 0; i < count; i++) answers.push(limiter.tryAcquire(K));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const decisions = await together(answers);
  const seconds = (performance.now() - startMs) / 1000;
  const allowed = decisions.filter((decision) => decision.allowed);
  const local = allowed.filter(({ source }) => source === 'local').length;
  return { allowed: allowed.length, local, asked: decisions.length, seconds, turns };
}

interface Hammered {
  readonly allowed: number;
  readonly local: number;
  readonly asked: number;
  /** Until the last answer. */
  readonly seconds: number;
  /** When requests were made, in milliseconds. */
  readonly turns: readonly number[];
}

/** Tokens that came while somebody asked for them: of a turn that the machine has put off, no more than a burst. */
function refilled(turns: readonly number[], rate: number, burst: number): number {
  const gaps = turns.slice(1).map((at, index) => at - turns[index]!);
  return gaps.reduce((sum, gapMs) => sum + Math.min((gapMs / 1000) * rate, burst), 0);
}

describe('leases on Redis', () => {
  let server: RedisProcess;
  let client: Redis;
  const limiters: RateLimiter[] = [];
  let prefixes = 0;

  async function one(
    policy: PolicyInput,
    prefix: string,
    more: Record<string, PolicyInput> = {},
  ): Promise<RateLimiter> {
    const limiter = createRateLimiter({
      policies: { p: policy, ...more },
      store: { type: 'redis', url: server.url, prefix, decisionTimeout: '5s' },
    });
    limiters.push(limiter);
    await limiter.ready();
    return limiter;
  }

  /** So many requests of one turn that the key is leased when they have been answered. */
  async function warm(limiter: RateLimiter, requests = 20): Promise<number> {
    const decisions = await together(Array.from({ length: requests }, () => limiter.tryAcquire(K)));
    await until(() => !(limiter.tryAcquire(K) instanceof Promise), { what: 'a lease' });
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
    return requests;
  }

  /** A node that takes tokens of the key ahead, and is never heard of again. */
  async function leaseAndDie(
    rate: number,
    burst: number,
    want: number,
    prefix: string,
  ): Promise<LeaseGrant> {
    const shape = { periodMs: 1000, maxDelayMs: Infinity, subWindows: 1 };
    const limit = compileLimit({ algorithm: AlgorithmCode.TokenBucket, rate, burst, ...shape });
    const settings = { decisionTimeoutMs: 5000, maxBatch: 64, nodeId: 'dead', onSwitch: () => {} };
    const node = new RedisStore(
      { connection: { url: server.url }, prefix, ...settings },
      new SystemClock(),
    );
    await node.ready(5000);
    const grant = await new Promise<LeaseGrant>((settled, failed) => {
      node.submit({
        kind: CallKind.Lease,
        limit: { id: 'p:default:1', figures: limit, revision: 0 },
        key: 'k',
        want,
        report: { generation: 0, used: 0, returned: 0, olderUsed: 0, olderReturned: 0 },
        settled,
        failed,
        settledLate: () => {},
      });
    });
    await node.close();
    return grant;
  }

  const nextPrefix = (): string => `leases${prefixes++}`;

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl);
  });

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  });

  afterAll(async () => {
    client.disconnect();
    await stopAll();
  });

  it('decide nearly every request for a hot key in the process, and within the limit', async () => {
    const prefix = nextPrefix();
    const policy = { rate: 50_000, burst: 50_000 };
    const pair = [await one(policy, prefix), await one(policy, prefix)];
    await Promise.all(pair.map((limiter) => warm(limiter)));
    const { allowed, local, asked, seconds } = await hammer(pair, 1000, perTurn(3));
    expect(allowed).toBe(asked);
    expect(local / asked).toBeGreaterThanOrEqual(0.95);
    expect(allowed).toBeLessThanOrEqual(50_000 + 50_000 * seconds);
    const calls = pair.reduce((sum, limiter) => sum + countersOf(limiter).leaseCalls, 0);
    expect(calls).toBeLessThan(asked / 10);
  });

  it.each<[string, PolicyInput['sync'], PolicyInput['sync']]>([
    ['two that lease', 'auto', 'leased'],
    ['one that leases and one that is exact', 'leased', 'exact'],
  ])('hold the limit when more is asked for than there is: %s', async (_name, first, second) => {
    const prefix = nextPrefix();
    const [rate, burst] = [2000, 400];
    const a = await one({ rate, burst, sync: first }, prefix);
    const b = await one({ rate, burst, sync: second }, prefix);
    const { allowed, asked, seconds, turns } = await hammer([a, b], 1500, perMs(3));
    const offered = refilled(turns, rate, burst);
    expect(asked).toBeGreaterThan(1.5 * offered);
    expect(allowed).toBeLessThanOrEqual(burst + rate * seconds);
    expect(allowed).toBeGreaterThan(0.75 * offered);
    expect(countersOf(a).leased).toBeGreaterThan(0);
    if (second === 'exact') expect(countersOf(b)).toMatchObject({ leased: 0, leaseCalls: 0 });
  });

  it.each([64, 8])(
    'take nothing from requests that wait, in batches of up to %i',
    async (maxBatch) => {
      const limiter = createRateLimiter({
        policies: { p: { rate: 50, period: '1d' } },
        store: {
          type: 'redis',
          url: server.url,
          prefix: nextPrefix(),
          maxBatch,
          decisionTimeout: '5s',
        },
      });
      limiters.push(limiter);
      await limiter.ready();
      const decisions = await together(Array.from({ length: 60 }, () => limiter.tryAcquire(K)));
      expect(countersOf(limiter).leaseCalls).toBeGreaterThan(0);
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(50);
    },
  );

  it('of a process that died are lost for at least one lease time and at most two', async () => {
    const prefix = nextPrefix();
    // The bucket itself would be forgotten within two milliseconds.
    const [rate, burst] = [100_000, 100];
    const limiter = await one({ rate, burst, sync: 'exact' }, prefix);
    const startMs = performance.now();
    const grant = await leaseAndDie(rate, burst, 40, prefix);
    const grantedMs = performance.now();
    expect(grant.granted).toBe(40);
    const remaining = async (): Promise<number> => (await limiter.peek(K)).remaining;
    expect(await remaining()).toBe(60);
    await until(async () => (await remaining()) > 60, { what: 'the tokens to come back' });
    const backMs = performance.now();
    expect(backMs - startMs).toBeGreaterThanOrEqual(LEASE_TTL_MS);
    expect(backMs - grantedMs).toBeLessThan(2 * LEASE_TTL_MS + 500);
    expect(await until(async () => (await remaining()) === burst)).toBe(true);
  });

  it('count one by one when the figures change, so that a lower limit holds sooner', async () => {
    const prefix = nextPrefix();
    const { granted } = await leaseAndDie(1, 100, 40, prefix);
    const lower = await one({ rate: 1, burst: 50, sync: 'exact' }, prefix);
    expect(granted).toBe(40);
    expect((await lower.peek(K)).remaining).toBe(10);
    const lowest = await one({ rate: 1, burst: 30, sync: 'exact' }, prefix);
    expect((await lowest.peek(K)).remaining).toBe(0);
  });

  it('after a flush let through at most one burst and what was outstanding', async () => {
    const prefix = nextPrefix();
    const policy: PolicyInput = { rate: 1000, period: '1d' };
    const exact = await one({ ...policy, sync: 'exact' }, prefix);
    const leased: PolicyInput = { ...policy, sync: 'leased' };
    const pair = [await one(leased, prefix), await one(leased, prefix)];
    const before = await hammer(pair, 60, perTurn(2));
    expect(before.local).toBeGreaterThan(0);
    expect(before.allowed).toBeLessThanOrEqual(1000);
    const { remaining } = await exact.peek(K);
    const inHands = 1000 - before.allowed - remaining;
    expect(inHands).toBeGreaterThan(0);
    await client.flushall();
    const after = await hammer(pair, 1500, perMs(2));
    expect(after.asked).toBeGreaterThan(3000);
    expect(after.allowed).toBeLessThanOrEqual(1000 + inHands);
    expect(after.allowed).toBeGreaterThan(900);
  });

  it('come back on closing, so that the others have them at once', async () => {
    const prefix = nextPrefix();
    const policy: PolicyInput = { rate: 1000, period: '1d' };
    const leaving = await one(policy, prefix);
    const staying = await one({ ...policy, sync: 'exact' }, prefix);
    await warm(leaving);
    const { allowed } = countersOf(leaving);
    expect((await staying.peek(K)).remaining).toBeLessThan(1000 - allowed);
    await leaving.close();
    expect((await staying.peek(K)).remaining).toBe(1000 - allowed);
  });

  it('that are on their way when the limiter is closed come back too', async () => {
    const prefix = nextPrefix();
    const policy: PolicyInput = { rate: 1000, period: '1d' };
    const staying = await one({ ...policy, sync: 'exact' }, prefix);
    const leaving = await one(policy, prefix);
    const asked = Array.from({ length: 10 }, () => leaving.tryAcquire(K));
    await leaving.close();
    await together(asked);
    const { allowed, leaseCalls } = countersOf(leaving);
    expect([allowed, leaseCalls]).toEqual([10, 2]);
    expect((await staying.peek(K)).remaining).toBe(990);
  });

  it('answer peek, refund and reset as if all tokens lay in one place', async () => {
    const limiter = await one({ rate: 1000, period: '1d' }, nextPrefix());
    await warm(limiter);
    const used = (): number => countersOf(limiter).allowed;
    const before = 1000 - used();
    await hasLeft(limiter, before);
    await limiter.tryAcquire({ ...K, cost: 2 });
    await hasLeft(limiter, before - 2);
    await limiter.refund({ ...K, cost: 2 });
    await hasLeft(limiter, before);
    await limiter.reset(K);
    expect((await limiter.peek(K)).remaining).toBe(1000);
    expect(await limiter.tryAcquire({ ...K, cost: 1000 })).toMatchObject({ allowed: true });
    expect(await limiter.tryAcquire(K)).toMatchObject({ allowed: false });
  });

  it('take part in all or nothing: what was taken goes back if another policy denies', async () => {
    const tight: PolicyInput = { rate: 1, period: '1d' };
    const limiter = await one({ rate: 1000, period: '1d' }, nextPrefix(), { tight });
    await warm(limiter);
    const both = [K, { policy: 'tight', key: 'k' }];
    const allowed = await limiter.tryAcquire(both);
    expect(allowed.decisions?.map(({ policy, source }) => `${policy} ${source}`).sort()).toEqual([
      'p local',
      'tight store',
    ]);
    const remaining = 1000 - countersOf(limiter).allowed;
    await hasLeft(limiter, remaining);
    for (let i = 0; i < 5; i++) {
      expect(await limiter.tryAcquire(both)).toMatchObject({ allowed: false, policy: 'tight' });
    }
    await hasLeft(limiter, remaining);
  });

  it('are used while Redis is away, and then the failure mode applies', async () => {
    const own = await startRedis();
    const limiter = createRateLimiter({
      policies: { p: { rate: 1000, period: '1d' } },
      store: { type: 'redis', url: own.url, decisionTimeout: '1s' },
    });
    limiters.push(limiter);
    await limiter.ready();
    await warm(limiter);
    let isDown = false;
    limiter.on('store', ({ state }) => (isDown = state === 'down'));
    await own.kill();
    await until(() => isDown);
    const sources = Array.from({ length: 1000 }, () => now(limiter.tryAcquire(K)).source);
    const first = sources.indexOf('fallback');
    expect(first).toBeGreaterThan(0);
    expect(new Set(sources.slice(0, first))).toEqual(new Set(['local']));
    expect(now(limiter.tryAcquire(K)).source).toBe('fallback');
  });

  it('say what is left, approximately, and are counted', async () => {
    const limiter = await one({ rate: 1000, period: '1d' }, nextPrefix());
    await warm(limiter);
    const decision = now(limiter.tryAcquire(K));
    expect(decision).toMatchObject({
      allowed: true,
      source: 'local',
      limit: 1000,
      retryAfterMs: 0,
    });
    expect(Math.abs(decision.remaining - (1000 - countersOf(limiter).allowed))).toBeLessThan(60);
    const { leased, leaseCalls, allowed } = countersOf(limiter);
    expect(leased).toBeGreaterThan(0);
    expect(leased).toBeLessThan(allowed);
    expect(leaseCalls).toBeGreaterThan(0);
  });

  it('are not taken for other algorithms, exact policies and small buckets', async () => {
    const limiter = await one({ rate: 1000, sync: 'exact' }, nextPrefix(), {
      window: { rate: 1000, algorithm: 'sliding-window' },
      leaky: { rate: 1000, algorithm: 'leaky-bucket' },
      small: { rate: 10 },
    });
    for (const policy of ['p', 'window', 'leaky', 'small']) {
      for (let turn = 0; turn < 3; turn++) {
        await together(Array.from({ length: 10 }, () => limiter.tryAcquire({ policy, key: 'k' })));
      }
      expect(limiter.stats().policies[policy]).toMatchObject({ leased: 0, leaseCalls: 0 });
    }
  });
});
