import fc from 'fast-check';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { CallKind } from '../../lib/stores/remote-store.js';
import { RevisedTwin, type BucketCaller } from '../../lib/cli/simulator/redis/revised-buckets.js';
import { LuaSide } from '../support/differential.js';
import { startRedis, stopAll } from '../support/index.js';
import { compileLimit, type LimitSpec } from '../support/limits.js';

const START_MICROS = 1_700_000_000_000_000;
const HISTORIES = 150;
const STEPS = 80;
const REVISIONS = 8;

type Kind = 'take' | 'peek' | 'refund' | 'late refund' | 'debt' | 'lease';

interface Step {
  readonly gapMicros: number;
  readonly kind: Kind;
  readonly key: string;
  readonly cost: number;
  /** Of a late refund: the age of the take. */
  readonly ageMicros: number;
  /** The fleet gets a new revision with this step. */
  readonly isChange: boolean;
  /** The number of revisions that the caller is behind. */
  readonly lag: number;
  readonly generationsBack: number;
  readonly figures: readonly number[];
}

interface History {
  readonly specs: readonly LimitSpec[];
  /** 0: the first callers know of no configuration. */
  readonly firstRevision: number;
  readonly steps: readonly Step[];
}

const figure = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 1, max: 100_000 }),
  fc.constantFrom(1, 7, 60, 1000, 999_983, 1_000_000),
);

function specs(algorithm: AlgorithmCode): fc.Arbitrary<LimitSpec> {
  const isWindow = algorithm === AlgorithmCode.SlidingWindow;
  return fc.record({
    algorithm: fc.constant(algorithm),
    rate: isWindow ? figure : fc.oneof(figure, fc.double({ min: 0.1, max: 1000, noNaN: true })),
    periodMs: fc.oneof(fc.constantFrom(1000, 60_000), fc.integer({ min: 1, max: 100_000 })),
    burst: figure,
    maxDelayMs: fc.constantFrom(Infinity, 1, 700),
    // Few choices, so that a change often leaves the cut as it is.
    subWindows: fc.constantFrom(2, 4, 4, 4, 11),
  });
}

const tokens = fc.oneof(fc.constant(0), fc.nat({ max: 3 }), fc.nat({ max: 1000 }));

function steps(canLease: boolean): fc.Arbitrary<Step> {
  const kinds: Kind[] = ['take', 'take', 'take', 'take', 'peek', 'refund', 'late refund', 'debt'];
  return fc.record({
    gapMicros: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 200_000 }) },
      { weight: 2, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: 500_000, max: 5_000_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: -3_000_000, max: 0 }) },
      { weight: 1, arbitrary: fc.constantFrom(-1_000_000, -1_000_001, -3_600_000_000) },
    ),
    kind: fc.constantFrom(...kinds, ...(canLease ? (['lease', 'lease', 'lease'] as const) : [])),
    key: fc.constantFrom('a', 'b'),
    cost: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 1_000_000 })),
    ageMicros: fc.oneof(fc.nat({ max: 50_000 }), fc.integer({ min: -1_000_000, max: 5_000_000 })),
    isChange: fc.constantFrom(false, false, false, false, true),
    lag: fc.constantFrom(0, 0, 0, 1, 2),
    generationsBack: fc.integer({ min: -1, max: 2 }),
    figures: fc.array(tokens, { minLength: 5, maxLength: 5 }),
  });
}

function histories(algorithm: AlgorithmCode, canLease: boolean): fc.Arbitrary<History> {
  return fc.record({
    // Often a rate changes and the rest stays, or all of it, as in life.
    specs: fc
      .tuple(
        specs(algorithm),
        fc.array(
          fc.oneof(specs(algorithm), specs(algorithm).map(pickRate), fc.constant({} as LimitSpec)),
          {
            minLength: REVISIONS - 1,
            maxLength: REVISIONS - 1,
          },
        ),
      )
      .map(([first, others]) => [first, ...others.map((other) => ({ ...first, ...other }))]),
    firstRevision: fc.constantFrom(0, 1, 41),
    steps: fc.array(steps(canLease), { minLength: 1, maxLength: STEPS, size: 'max' }),
  });
}

function pickRate({ rate, burst }: LimitSpec): LimitSpec {
  return { rate, burst } as LimitSpec;
}

const algorithms: [name: string, code: AlgorithmCode, canLease: boolean][] = [
  ['token buckets', AlgorithmCode.TokenBucket, false],
  ['leased token buckets', AlgorithmCode.TokenBucket, true],
  ['leaky policers', AlgorithmCode.LeakyPolicer, false],
  ['leaky shapers', AlgorithmCode.LeakyShaper, false],
  ['sliding windows', AlgorithmCode.SlidingWindow, false],
];

describe('limits that change, in the Lua script and in the pure functions', () => {
  let lua: LuaSide;
  let pairs = 0;

  beforeAll(async () => {
    const redis = await startRedis();
    lua = new LuaSide(redis.url);
    await lua.ready();
  });

  afterAll(async () => {
    await lua.close();
    await stopAll();
  });

  /** Both sides of a history, step by step, and how often a caller was behind its bucket. */
  function play(history: History, canLease: boolean): { here: unknown; lua: Promise<unknown> }[] {
    const id = `revised${pairs++}`;
    const twin = new RevisedTwin(canLease);
    // Redis forgets by its own clock, which here runs on while the injected one stands still.
    const limits: Limit[] = history.specs.map((spec) => ({ ...compileLimit(spec), ttlMs: 1e9 }));
    let now = START_MICROS;
    let fleet = 0;
    return history.steps.map((step) => {
      now += step.gapMicros;
      if (step.isChange) fleet = Math.min(fleet + 1, limits.length - 1);
      const at = Math.max(0, fleet - step.lag);
      const caller: BucketCaller = { limit: limits[at]!, revision: history.firstRevision + at };
      const shared = { id, figures: caller.limit, revision: caller.revision };
      const { key } = step;
      const cost = Math.min(step.cost, caller.limit.capacity);
      if (step.kind === 'lease') {
        const [want = 0, used = 0, returned = 0, olderUsed = 0, olderReturned = 0] = step.figures;
        const generation = twin.generationOf(key, now) - step.generationsBack;
        const report = { generation, used, returned, olderUsed, olderReturned };
        const here = twin.lease(caller, key, report, want, now);
        return { here, lua: lua.lease({ limit: shared, key, want, report }, now) };
      }
      if (step.kind === 'refund') {
        const here = twin.refund(caller, key, cost, now);
        return { here, lua: lua.ask(CallKind.Refund, shared, key, cost, now) };
      }
      if (step.kind === 'late refund') {
        const takenAt = now - step.ageMicros;
        const here = twin.refundLate(caller, key, cost, now, takenAt);
        return { here, lua: lua.ask(CallKind.LateRefund, shared, key, cost, now, takenAt) };
      }
      if (step.kind === 'debt') {
        const here = twin.owe(caller, key, cost, now);
        return { here, lua: lua.ask(CallKind.Debt, shared, key, cost, now) };
      }
      const isPeek = step.kind === 'peek';
      const kind = isPeek ? CallKind.Peek : CallKind.Take;
      const here = twin.take(caller, key, cost, now, isPeek);
      return { here, lua: lua.ask(kind, shared, key, cost, now) };
    });
  }

  it.each(algorithms)('agree on %s to the unit', async (_name, code, canLease) => {
    await fc.assert(
      fc.asyncProperty(histories(code, canLease), async (history) => {
        const asked = play(history, canLease);
        const answers = await Promise.all(asked.map((step) => step.lua));
        expect(answers).toEqual(asked.map((step) => step.here));
      }),
      { numRuns: HISTORIES },
    );
  });
});
