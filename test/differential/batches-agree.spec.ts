import fc from 'fast-check';
import {
  AlgorithmCode,
  compileLimit,
  Outcome,
  type LimitSpec,
} from '../../lib/algorithms/index.js';
import { SystemClock } from '../../lib/common/clock.js';
import {
  CallKind,
  MemoryStore,
  RedisStore,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
} from '../../lib/stores/index.js';
import { startRedis, stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';

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
  let store: RedisStore;
  let now = START_MICROS;
  let histories = 0;

  beforeAll(async () => {
    const redis = await startRedis();
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
      new SystemClock(),
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
                const shared = { id: `h${history}:${limit}:x`, limit: limits[limit]!, revision: 0 };
                return { shared, key, cost };
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
});
