import fc from 'fast-check';
import { type QuotaFigures } from '../../../lib/algorithms/quota/quota-limits.js';
import { weightedShares } from '../../../lib/algorithms/quota/weighted-share.js';
import { QuotaFleet } from '../../support/quota-fleet.js';
import { figures, isValid, mostBeyond } from '../../support/quota-histories.js';

const PACE_MICROS = 50_000;
const CALLS_PER_SECOND = 1e6 / PACE_MICROS;
const TICK_MICROS = 100_000;
const WEIGHTS = [8, 4, 2, 1];
const WARM_UP_SECONDS = 4;
const SECONDS = 10;

/** Each app has one node that asks for all of its demand, at a steady pace. */
function overload(given: QuotaFigures, demands: readonly number[], seconds: number): QuotaFleet {
  const fleet = new QuotaFleet(given);
  keepAsking(fleet, demands, seconds);
  return fleet;
}

function keepAsking(fleet: QuotaFleet, demands: readonly number[], seconds: number): void {
  for (let calls = 0; calls < (seconds * 1e6) / PACE_MICROS; calls++) {
    for (const [app, demand] of demands.entries()) {
      const ask = { app, node: app, action: 'call' as const, tokens: 0, cost: 1, gapMicros: 0 };
      fleet.step({ ...ask, count: Math.ceil(demand / CALLS_PER_SECOND), demand });
    }
    fleet.nowMicros += PACE_MICROS;
  }
}

/** Of priorities 0 to 3, with more credit than they can spend. */
function fourApps(): QuotaFigures {
  const app = { guaranteed: 1000, burst: 10_000, burstDurationMs: 1000, elastic: true };
  const apps = [0, 1, 2, 3].map((priority) => ({ ...app, priority }));
  return figures(apps, { capacity: 10_000 });
}

function sharesOf({ apps, cluster }: QuotaFigures, demands: readonly number[]): number[] {
  const claims = apps.map(({ guaranteed, burst, priority }, i) => {
    return { demand: demands[i]!, guaranteed, burst, weight: WEIGHTS[priority]! };
  });
  return weightedShares(claims, cluster!.capacity);
}

/** Tokens per second that each app was granted once all had settled. */
function ratesOf({ books, limits, nowMicros }: QuotaFleet, fromMicros: number): number[] {
  const seconds = (nowMicros - fromMicros) / 1e6;
  return limits.apps.map((_, index) => {
    const own = books.grants.filter(({ app, atMicros }) => app === index && atMicros >= fromMicros);
    return own.reduce((sum, { tokens }) => sum + tokens, 0) / seconds;
  });
}

/** Four apps of priorities 0 to 3 whose credit is never what is short. */
function anyOverload(capacity: number) {
  return fc
    .record({
      guaranteed: fc.array(fc.integer({ min: 1, max: Math.ceil(capacity / 4) }), {
        minLength: 4,
        maxLength: 4,
      }),
      parts: fc.array(fc.integer({ min: 30, max: 200 }), { minLength: 4, maxLength: 4 }),
      elastic: fc.boolean(),
    })
    .map(({ guaranteed, parts, elastic }) => ({
      given: figures(
        guaranteed.map((own, priority) => {
          return { guaranteed: own, burst: 2 * capacity, burstDurationMs: 100, priority, elastic };
        }),
        { capacity },
      ),
      demands: parts.map((part) => Math.ceil((part * capacity) / 100)),
    }))
    .filter(({ given }) => isValid(given));
}

describe('during overload', () => {
  it('4 apps × 5,000 offered, 1,000 guaranteed, C 10,000: shared 8:4:2:1 beyond the guarantee', () => {
    const fleet = overload(fourApps(), [5000, 5000, 5000, 5000], 12);
    const rates = ratesOf(fleet, fleet.nowMicros - 8e6);
    const off = rates.map((rate, i) => Math.abs(rate - [4200, 2600, 1800, 1400][i]!));
    expect(Math.max(...off)).toBeLessThan(20);
  });

  // The depth of a share: two ticks, and up to four where the cluster is so deep that leases last longer than half a tick.
  it.each([
    [10, 0.4],
    [100, 0.4],
    [10_000, 0.2],
  ])(
    'C = %i: nobody is lent more than its share, and priority 0 not less, to a tick',
    (capacity, shareSeconds) => {
      fc.assert(
        fc.property(anyOverload(capacity), ({ given, demands }) => {
          const fleet = overload(given, demands, WARM_UP_SECONDS + SECONDS);
          const from = fleet.nowMicros - SECONDS * 1e6;
          const shares = sharesOf(given, demands);
          const rates = ratesOf(fleet, from);
          for (const [i, { guaranteed }] of given.apps.entries()) {
            const { stockDepth } = fleet.limits.apps[i]!;
            const shareDepth = Math.max(shareSeconds * (shares[i]! - guaranteed), given.maxCost);
            const grants = fleet.books.grants.filter((g) => g.app === i && g.atMicros >= from);
            const beyond = mostBeyond(grants, shares[i]!);
            expect(beyond).toBeLessThanOrEqual(stockDepth / 1e6 + shareDepth + 1e-6);
            expect(rates[i]).toBeGreaterThan(Math.min(guaranteed, demands[i]!) - 1 / SECONDS);
          }
          // A lower priority waits until the reserves of the higher ones are full; this one does not.
          const tick = 0.1 * (shares[0]! - given.apps[0]!.guaranteed);
          // Its two buckets, of what is guaranteed and of its share, may each keep a part of a token.
          expect(rates[0]).toBeGreaterThan(shares[0]! - (tick + 2) / SECONDS);
        }),
        { numRuns: 30 },
      );
    },
  );

  it('a new demand has its new share within a tick', () => {
    const given = fourApps();
    const fleet = overload(given, [1000, 5000, 5000, 5000], 10);
    const before = fleet.nowMicros;
    keepAsking(fleet, [5000, 5000, 5000, 5000], 1);
    expect(ratesOf(fleet, before + 2 * TICK_MICROS)[0]).toBeGreaterThan(4100);
  });

  it('is entered above 90 % of the capacity and left below 85 %, by offered demand', () => {
    const given = fourApps();
    const fleet = new QuotaFleet(given);
    const overloadedAt = (demand: number): boolean => {
      keepAsking(fleet, [demand, 0, 0, 0], 0.2);
      return fleet.ledger.peek()!.cluster.overloaded;
    };
    expect([9000, 9001, 8500, 8499, 9000].map(overloadedAt)).toEqual([
      false,
      true,
      true,
      false,
      false,
    ]);
  });

  it('outside of it an elastic app may use all that is idle, and spends no credit', () => {
    const given = fourApps();
    const fleet = new QuotaFleet(given);
    const demand = 8000;
    keepAsking(fleet, [demand, 0, 0, 0], 5);
    const from = fleet.nowMicros;
    keepAsking(fleet, [demand, 0, 0, 0], 5);
    expect(ratesOf(fleet, from)[0]).toBeGreaterThan(7999);
    expect(fleet.ledger.peek()!.apps[0]!.credit).toBe(fleet.limits.apps[0]!.creditDepth);
  });
});
