import { Redis } from 'ioredis';
import { type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import { type AppCall, type QuotaCall } from '../../lib/algorithms/quota/quota-protocol.js';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisQuota } from '../../lib/stores/redis/redis-quota.js';
import { errorWith } from '../support/errors.js';
import { startRedis, stopAll, type RedisProcess } from '../support/index.js';
import { ManualClock, settle } from '../support/manual-clock.js';

const HOUR_MS = 3_600_000;
const START_MICROS = 1_700_000_000_000_000;
const LEDGER = 'test:{shop}:ledger';
const DEADLINES = 'test:{shop}:deadlines';
const LIMITS = 'test:{shop}:limits';

const FIGURES: QuotaFigures = {
  cluster: { capacity: 1000, burstRatio: 1.2, reservedRatio: 0.1 },
  apps: ['checkout', 'search'].map((app, priority) => ({
    app,
    guaranteed: 300,
    burst: 800,
    burstDurationMs: 60_000,
    priority,
    elastic: true,
  })),
  maxCost: 5,
  paceMs: 50,
  leaseTtlMs: 1000,
  reserveTarget: 0,
};

function callOf(seq: number, app: Partial<AppCall> = {}, more: Partial<QuotaCall> = {}): QuotaCall {
  const apps = [{ app: 0, used: 0, returned: 0, demand: 10, needs: [], want: 10, ...app }];
  return {
    ...{ node: 'a', incarnation: '1', seq, seenEpoch: 0, seenSequence: 0, leaving: false, apps },
    ...more,
  };
}

describe('the quota in Redis', () => {
  let server: RedisProcess;
  let client: Redis;
  let now: number;

  beforeEach(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl, { lazyConnect: true, enableOfflineQueue: false });
    client.on('error', () => {});
    await client.connect();
    now = START_MICROS;
  });

  afterEach(async () => {
    client.disconnect();
    await stopAll();
  });

  function quota(figures = FIGURES, clock: SystemClock | ManualClock = new SystemClock()) {
    const settings = { client, prefix: 'test', clusterId: 'shop', figures, timeoutMs: 2000 };
    return new RedisQuota({ ...settings, scriptNow: () => now }, clock);
  }

  it('gives a cluster without limits its own, readable for people too', async () => {
    const store = quota();
    const reply = await store.settle(callOf(1));
    expect(reply).toMatchObject({ epoch: 1, sequence: 1, nodes: 1, nowMicros: START_MICROS });
    expect(reply.apps[0]).toMatchObject({ granted: 10, shortage: 'none' });
    expect(reply).toMatchObject({ revision: 0, leaseTtlMicros: 1_000_000 });
    expect(await client.hget(LIMITS, 'revision')).toBe('0');
    expect(JSON.parse((await client.hget(LIMITS, 'names'))!)).toEqual(['checkout', 'search']);
    expect(JSON.parse((await client.hget(LIMITS, 'figures'))!)).toEqual(FIGURES);
  });

  it('uses the time of the server unless a test passes one', async () => {
    const settings = { client, prefix: 'test', clusterId: 'shop', figures: FIGURES };
    const store = new RedisQuota({ ...settings, timeoutMs: 2000 }, new SystemClock());
    const { nowMicros } = await store.settle(callOf(1));
    expect(Math.abs(nowMicros / 1000 - Date.now())).toBeLessThan(5000);
  });

  it('answers a call that comes twice with the same, and writes nothing', async () => {
    const store = quota();
    const first = await store.settle(callOf(1));
    const state = await client.hgetallBuffer(LEDGER);
    now += 50_000;
    expect(await store.settle(callOf(1, { want: 99 }))).toEqual(first);
    expect(await client.hgetallBuffer(LEDGER)).toEqual(state);
  });

  it('goes by new limits from the next tick on, without a new epoch', async () => {
    const store = quota();
    const before = await store.settle(callOf(1));
    await store.publish({ ...FIGURES, reserveTarget: 20, maxCost: 1 }, 1);
    now += 99_999;
    expect(await store.settle(callOf(2))).toMatchObject({ revision: 0 });
    now += 1;
    const after = await store.settle(callOf(3));
    expect(after).toMatchObject({ epoch: before.epoch, sequence: before.sequence + 2 });
    expect(after.revision).toBe(1);
  });

  it.each([
    ['another server has taken over', () => client.hset(LEDGER, 'run_id', 'f'.repeat(40))],
    ['the deadlines were evicted', () => client.del(DEADLINES)],
  ])('starts a new epoch, empty, when %s: within one tick', async (_what, happen) => {
    const store = quota();
    const { epoch } = await store.settle(callOf(1));
    await happen();
    now += 99_999;
    expect(await store.settle(callOf(2))).toMatchObject({ epoch });
    now += 1;
    const reply = await store.settle(callOf(3, { want: 1 }));
    expect(reply).toMatchObject({ epoch: epoch + 1, sequence: 1 });
    expect(reply.apps[0]).toMatchObject({ granted: 0 });
  });

  it.each([
    ['a tenth of a second and more', -150_000],
    ['an hour', -HOUR_MS * 1000],
  ])(
    'finds out at once that another server has taken over whose clock is %s behind',
    async (_by, stepMicros) => {
      const store = quota();
      const { epoch } = await store.settle(callOf(1));
      await client.hset(LEDGER, 'run_id', 'f'.repeat(40));
      now += stepMicros;
      const after = await store.settle(callOf(2));
      expect(after).toMatchObject({ epoch: epoch + 1, sequence: 1 });
      // And the rate flows from here on.
      now += 10_000;
      const seen = { seenEpoch: epoch + 1, seenSequence: 1 };
      const { apps } = await store.settle(callOf(3, { needs: [{ cost: 1, count: 3 }] }, seen));
      expect(apps[0]!.needs).toEqual([3]);
    },
  );

  it('tells in status when its last call was on the clock of the server, wherever that has stepped', async () => {
    const store = quota();
    await store.settle(callOf(1));
    now -= HOUR_MS * 1000;
    await store.settle(callOf(2));
    expect((await store.status()).asOfMs).toBe(now / 1000);
  });

  it('is gone an hour after its last call, all but the limits', async () => {
    const store = quota();
    await store.settle(callOf(1));
    await store.settle(callOf(2, {}, { leaving: true }));
    await store.settle(callOf(1, {}, { node: 'b' }));
    for (const key of [LEDGER, DEADLINES]) {
      const ttlMs = await client.pttl(key);
      expect(ttlMs).toBeGreaterThan(HOUR_MS - 10_000);
      expect(ttlMs).toBeLessThanOrEqual(HOUR_MS);
    }
    expect(await client.pttl(LIMITS)).toBe(-1);
    expect((await client.keys('*')).sort()).toEqual([DEADLINES, LEDGER, LIMITS]);
  });

  it('ends the leases of a fleet that died at once a few dozen per call, oldest first', async () => {
    const store = quota();
    const fleet = Array.from({ length: 150 }, (_, i) => callOf(1, {}, { node: `n${i}` }));
    await Promise.all([store.settle(callOf(1)), ...fleet.map((call) => store.settle(call))]);
    now += 1_000_000;
    const left: number[] = [];
    for (let seq = 2; seq < 6; seq++) left.push((await store.settle(callOf(seq))).nodes);
    // The caller's own lease is among the first 64, and begins anew.
    expect(left).toEqual([151 - 63, 151 - 127, 1, 1]);
    expect(await client.zcard(DEADLINES)).toBe(1);
  });

  it('says at the deadline that there was no answer in time', async () => {
    const clock = new ManualClock();
    const store = quota(FIGURES, clock);
    await store.settle(callOf(1));
    server.pause();
    const late = store.settle(callOf(2));
    const failure = expect(late).rejects.toEqual(errorWith({ code: 'STORE_TIMEOUT' }));
    clock.advance(2000);
    await settle();
    await failure;
    server.resume();
    expect(clock.pending).toBe(0);
  });

  it('says at once that there is no connection', async () => {
    const store = quota();
    client.disconnect();
    await expect(store.settle(callOf(1))).rejects.toEqual(errorWith({ code: 'STORE_UNAVAILABLE' }));
  });
});
