import { Redis } from 'ioredis';
import { QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import { compileQuota, type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import { type AppCall, type QuotaCall } from '../../lib/algorithms/quota/quota-protocol.js';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisQuota } from '../../lib/stores/redis/redis-quota.js';
import { startRedis, stopAll } from '../support/index.js';

/** As many apps as a quota may have, and as many that are gone as the ledger keeps a place for. */
const APPS = 1000;
const RETIRED = 256;
const TICK_MICROS = 100_000;

function figuresFrom(first: number): QuotaFigures {
  return {
    cluster: { capacity: 1_000_000, burstRatio: 1.2, reservedRatio: 0.1 },
    apps: Array.from({ length: APPS }, (_, i) => ({
      app: `app-${first + i}`,
      guaranteed: 100 + i,
      burst: 3000 + 7 * i,
      burstDurationMs: 1000,
      priority: i % 4,
      elastic: i % 3 === 0,
    })),
    maxCost: 2,
    paceMs: 50,
    leaseTtlMs: 1000,
    reserveTarget: 0,
  };
}

/** A call for all apps at once, with two groups of waiting requests each. */
function callOf(seq: number, first: number, others: Partial<AppCall> = {}): QuotaCall {
  const apps = Array.from({ length: APPS }, (_, i) => ({
    ...{ app: first + i, used: 0, returned: 0, demand: 900 + 13 * i, want: 3 },
    needs: [
      { cost: 1, count: 2 },
      { cost: 2, count: 1 },
    ],
    ...others,
  }));
  return {
    ...{ node: 'a', incarnation: '1', seq, seenEpoch: 0, seenSequence: 0, leaving: false },
    apps,
  };
}

describe('a quota of as many apps as there may be', () => {
  let client: Redis;

  beforeAll(async () => {
    client = new Redis((await startRedis()).adminUrl);
  });

  afterAll(async () => {
    client.disconnect();
    await stopAll();
  });

  it('is settled like any other: overload, retired apps, leases that end, and all of them in one call', async () => {
    let now = 1_700_000_000_000_000;
    const before = figuresFrom(0);
    const settings = { client, prefix: 'test', clusterId: 'many', timeoutMs: 60_000 };
    const store = new RedisQuota(
      { ...settings, figures: before, scriptNow: () => now },
      new SystemClock(),
    );
    const ledger = new QuotaLedger(compileQuota(before));
    const agree = async (call: QuotaCall): Promise<void> => {
      const reply = ledger.settle(now, call);
      expect(await store.settle(call)).toEqual(reply);
    };
    await agree(callOf(1, 0));
    now += TICK_MICROS;
    const after = figuresFrom(RETIRED);
    await store.publish(after, 1);
    const names = Array.from({ length: APPS + RETIRED }, (_, i) => `app-${i}`);
    ledger.change(now, compileQuota(after, names, 1));
    // The node still holds tokens of the apps that are gone.
    await agree(callOf(2, RETIRED));
    expect(ledger.peek()!.cluster.overloaded).toBe(true);
    now += TICK_MICROS;
    await agree(callOf(3, RETIRED, { used: 1, returned: 1, refunded: 1, owed: 1 }));
    now += 1_500_000;
    await agree({ ...callOf(1, RETIRED), node: 'b' });
    expect(ledger.peek()!.leases.size).toBe(1);
  });
});
