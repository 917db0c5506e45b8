import fc from 'fast-check';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import { type LeaseGrant, type LeaseReport } from '../../lib/algorithms/leased-bucket.js';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { SystemClock } from '../../lib/common/clock.js';
import { MemoryStore } from '../../lib/stores/memory/memory-store.js';
import { RedisStore } from '../../lib/stores/redis/redis-store.js';
import {
  CallKind,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
  type SharedLimit,
} from '../../lib/stores/remote-store.js';
import { startRedis, stopAll, withRedis, type RedisProcess } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { compileLimit, type LimitSpec } from '../support/limits.js';

interface Check {
  readonly limit: number;
  readonly key: string;
  readonly cost: number;
}

interface Call {
  readonly kind: RemoteCall['kind'];
  readonly checks: readonly Check[];
}

/** Time passes, then all of this is asked in one turn of the event loop. */
interface Turn {
  readonly gapMicros: number;
  readonly calls: readonly Call[];
}

const START_MICROS = 4_000_000_000_000_000;
const BURST = 6;

const specs: fc.Arbitrary<LimitSpec>[] = [
  AlgorithmCode.TokenBucket,
  AlgorithmCode.LeakyShaper,
  AlgorithmCode.SlidingWindow,
].map((algorithm) =>
  fc.record({
    algorithm: fc.constant(algorithm),
    rate: fc.integer({ min: BURST, max: 50 }),
    periodMs: fc.constantFrom(1000, 60_000),
    burst: fc.constant(BURST),
    maxDelayMs: fc.constantFrom(Infinity, 500),
    subWindows: fc.integer({ min: 2, max: 4 }),
  }),
);

const check: fc.Arbitrary<Check> = fc.record({
  limit: fc.nat({ max: specs.length - 1 }),
  key: fc.constantFrom('a', 'b'),
  cost: fc.integer({ min: 1, max: BURST }),
});

const turn: fc.Arbitrary<Turn> = fc.record({
  gapMicros: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 2_000_000 }),
    fc.integer({ min: -2_000_000, max: 0 }),
  ),
  calls: fc.array(
    fc.record({
      kind: fc.constantFrom(CallKind.Take, CallKind.Take, CallKind.Peek, CallKind.Refund),
      // A request may name each policy and key once.
      checks: fc.uniqueArray(check, {
        minLength: 1,
        maxLength: 3,
        selector: ({ limit, key }) => `${limit}:${key}`,
      }),
    }),
    { minLength: 1, maxLength: 8 },
  ),
});

describe('a batch of calls for several limits', () => {
  let redis: RedisProcess;
  let store: RedisStore;
  const clock = new SystemClock();
  let now = START_MICROS;
  let histories = 0;

  beforeAll(async () => {
    redis = await startRedis();
    store = new RedisStore(
      {
        connection: { url: redis.url },
        prefix: 'batches',
        decisionTimeoutMs: 60_000,
        maxBatch: 1000,
        nodeId: 'batches',
        onSwitch: () => {},
        scriptNow: () => now,
      },
      clock,
    );
    await store.ready(5000);
  });

  afterAll(async () => {
    await store.close();
    await stopAll();
  });

  function askRedis(
    kind: RemoteCall['kind'],
    checks: readonly RemoteCheck[],
  ): Promise<readonly RemoteAnswer[]> {
    return new Promise((resolve, reject) => {
      store.submit({ kind, checks, settled: resolve, failed: reject, settledLate: () => {} });
    });
  }

  it('is settled call by call as it would be in memory, each take all or nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(...specs),
        fc.array(turn, { maxLength: 12 }),
        async (chosen, turns) => {
          const history = histories++;
          const memory = new MemoryStore({ maxKeys: 1000, idleTimeoutMs: 1e9 }, new ManualClock());
          // Redis forgets by its own clock, which does not know of the gaps.
          const limits = chosen.map((spec) => ({ ...compileLimit(spec), ttlMs: 1e9 }));
          const tables = limits.map((limit) => memory.open(limit));
          const outcome = new Outcome();

          const inMemory = ({ kind, checks }: Call): (number | boolean)[][] => {
            outcome.nowMicros = now;
            const found = checks.map(({ limit, key, cost }) => {
              if (kind === CallKind.Refund) tables[limit]!.refund(key, cost, now);
              else tables[limit]!.peek(key, cost, outcome);
              return { ...outcome };
            });
            if (kind === CallKind.Refund) return found.map(() => [true, 0, 0]);
            const isGranted = found.every(({ allowed }) => allowed);
            if (kind === CallKind.Take && isGranted) {
              for (const { limit, key, cost } of checks) tables[limit]!.take(key, cost, outcome);
            }
            return found.map(({ allowed, level, waitMicros }, i) => {
              const { limit, cost } = checks[i]!;
              const isUntouched = kind === CallKind.Take && !isGranted && allowed;
              const back = isUntouched ? cost * limits[limit]!.perToken : 0;
              return [allowed, level + back, waitMicros];
            });
          };

          for (const { gapMicros, calls } of turns) {
            now += gapMicros;
            const answers = calls.map(({ kind, checks }) => {
              const remote = checks.map(({ limit, key, cost }) => {
                const shared = {
                  id: `h${history}:${limit}:x`,
                  figures: limits[limit]!,
                  revision: 0,
                };
                return { limit: shared, key, cost };
              });
              return askRedis(kind, remote);
            });
            const expected = calls.map(inMemory);
            const got = (await Promise.all(answers)).map((call) =>
              call.map(({ allowed, level, waitMicros }) => [allowed, level, waitMicros]),
            );
            expect(got).toEqual(expected);
          }
          memory.close();
        },
      ),
      { numRuns: 300 },
    );
  });

  it('keeps a bucket that owes tokens until it has recovered', async () => {
    const figures = { rate: 6, periodMs: 1000, burst: 6, maxDelayMs: Infinity, subWindows: 1 };
    const limit = compileLimit({ algorithm: AlgorithmCode.TokenBucket, ...figures });
    const ask = (kind: RemoteCall['kind'], cost: number) =>
      askRedis(kind, [{ limit: { id: 'owing', figures: limit, revision: 0 }, key: 'k', cost }]);
    await ask(CallKind.Take, 1);
    // Soon enough for the state to be overwritten in place, with the time to live that it has.
    now += 900_000;
    await ask(CallKind.Take, 6);
    await ask(CallKind.Debt, 6);
    const state = await withRedis(redis.port, async (client) => {
      const [key] = await client.keys('*owing*');
      return client.getBuffer(key!);
    });
    const [level, expiry] = [state!.readDoubleLE(0), state!.readDoubleLE(24)];
    expect(level).toBe(-limit.full);
    expect(expiry - now).toBeGreaterThanOrEqual((2 * limit.full) / limit.perMicro);
  });

  it.each([
    ['a bucket', AlgorithmCode.TokenBucket],
    ['a window', AlgorithmCode.SlidingWindow],
  ])('of %s that was reset, books only debts from after that', async (_what, algorithm) => {
    const figures = { rate: 6, periodMs: 3_600_000, burst: 6, maxDelayMs: Infinity, subWindows: 2 };
    const limit = {
      ...{ id: `reset:${algorithm}:x`, figures: compileLimit({ algorithm, ...figures }) },
      revision: 0,
    };
    const check = { limit, key: 'k', cost: 1 };
    const left = async (): Promise<number> => {
      const [answer] = await askRedis(CallKind.Peek, [check]);
      return answer!.level / limit.figures.perToken + 1;
    };
    const owe = (agesMicros: number[]) => {
      const usedAt = agesMicros.map((age) => ({ ...check, usedAtMicros: clock.now() - age }));
      return askRedis(CallKind.Debt, usedAt);
    };
    await owe([0, 0]);
    expect(await left()).toBe(4);
    await store.reset(limit, 'k');
    expect(await left()).toBe(6);
    now += 1_000_000;
    await owe([500_000, 60_000_000, 0, 60_000_000]);
    expect(await left()).toBe(4);
    // A clock that has stepped back since knows nothing of when that was.
    now -= 10_000_000;
    await owe([60_000_000]);
    expect(await left()).toBe(3);
  });

  it('counts leased tokens of an earlier limit as the part of the bucket that they are', async () => {
    const [before, after] = [100, 10].map((burst, index) => {
      const figures = { rate: 1, periodMs: 86_400_000, burst, maxDelayMs: Infinity, subWindows: 1 };
      const limit = compileLimit({ algorithm: AlgorithmCode.TokenBucket, ...figures });
      return { id: 'leased', figures: limit, revision: 1 + index };
    }) as [SharedLimit, SharedLimit];
    const ask = (kind: RemoteCall['kind'], limit: SharedLimit, cost: number) =>
      askRedis(kind, [{ limit, key: 'k', cost }]);
    const lease = (want: number, report: LeaseReport): Promise<LeaseGrant> =>
      new Promise((settled, failed) => {
        const call = { limit: before, key: 'k', want, report, settled, failed };
        store.submit({ kind: CallKind.Lease, ...call, settledLate: () => {} });
      });
    const report = { generation: 0, used: 0, returned: 0, olderUsed: 0, olderReturned: 0 };

    await ask(CallKind.Take, before, 60);
    const { granted, generation } = await lease(40, report);
    expect(granted).toBe(40);
    const together = lease(5, { ...report, generation, returned: 40 });
    await Promise.all([ask(CallKind.Peek, after, 1), together]);
    expect(await together).toMatchObject({ granted: 0 });
    const [{ level }] = (await ask(CallKind.Peek, after, 1)) as [RemoteAnswer];
    expect(level / after.figures.perToken + 1).toBe(4);
  });
});
