import fc from 'fast-check';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { CallKind } from '../../lib/stores/remote-store.js';
import { GivenPair, LuaSide, Pair, type Step, type Verdict } from '../support/differential.js';
import { startRedis, stopAll } from '../support/index.js';
import { type LimitSpec } from '../support/limits.js';

const STEPS = 100_000;
const STEPS_PER_LIMIT = 500;

const algorithms: [name: string, code: AlgorithmCode][] = [
  ['token bucket', AlgorithmCode.TokenBucket],
  ['leaky policer', AlgorithmCode.LeakyPolicer],
  ['leaky shaper', AlgorithmCode.LeakyShaper],
  ['sliding window', AlgorithmCode.SlidingWindow],
];

const figure = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 1, max: 1_000_000 }),
  fc.constantFrom(1, 7, 60, 1000, 999_983, 1_000_000),
);
const rate = fc.oneof(figure, fc.double({ min: 0.1, max: 1000, noNaN: true }));

/** Policies whose buckets would take longer to fill are refused when they are read. */
const CENTURY_MS = 100 * 365 * 86_400_000;

function specs(algorithm: AlgorithmCode): fc.Arbitrary<LimitSpec> {
  const figures: fc.Arbitrary<LimitSpec> = fc.record({
    algorithm: fc.constant(algorithm),
    rate: algorithm === AlgorithmCode.SlidingWindow ? figure : rate,
    periodMs: fc.oneof(
      fc.constantFrom(1000, 60_000, 86_400_000),
      fc.integer({ min: 1, max: 100_000 }),
    ),
    burst: figure,
    maxDelayMs: fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 10_000 })),
    subWindows: fc.integer({ min: 2, max: 20 }),
  });
  return figures.filter(({ burst, rate, periodMs }) => (burst / rate) * periodMs <= CENTURY_MS);
}

/** Gaps on the scale of the limit, so that buckets are now empty, now full; and clock steps. */
function steps(spec: LimitSpec): fc.Arbitrary<Step> {
  const perToken = Math.max(1, Math.round((spec.periodMs * 1000) / spec.rate));
  return fc.record({
    gapMicros: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: Math.min(4 * perToken, 1e11) }) },
      { weight: 2, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: spec.periodMs * 2000 }) },
      { weight: 1, arbitrary: fc.integer({ min: -spec.periodMs * 1000, max: 0 }) },
      { weight: 1, arbitrary: fc.constantFrom(-1_000_000, -1_000_001, -3_600_000_000) },
    ),
    kind: fc.constantFrom(
      CallKind.Take,
      CallKind.Take,
      CallKind.Take,
      CallKind.Peek,
      CallKind.Refund,
    ),
    key: fc.constantFrom('a', 'b'),
    cost: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: spec.burst })),
  });
}

function sameVerdict(a: Verdict, b: Verdict): boolean {
  return a.allowed === b.allowed && a.level === b.level && a.waitMicros === b.waitMicros;
}

describe('the Lua script and the memory store', () => {
  let lua: LuaSide;

  beforeAll(async () => {
    const redis = await startRedis();
    lua = new LuaSide(redis.url);
    await lua.ready();
  });

  afterAll(async () => {
    await lua.close();
    await stopAll();
  });

  it.each(algorithms)(
    `agree on %s over ${STEPS.toLocaleString('en')} random steps`,
    async (_name, code) => {
      const seed = Number(process.env.WEIR_SEED ?? Date.now() % 2 ** 31);
      const limits = fc.sample(specs(code), { numRuns: STEPS / STEPS_PER_LIMIT, seed });
      for (const [index, spec] of limits.entries()) {
        const pair = new Pair(spec, lua);
        const history = fc.sample(steps(spec), { numRuns: STEPS_PER_LIMIT, seed: seed + index });
        const asked = history.map((step) => pair.step(step));
        const answers = await Promise.all(asked.map((step) => step.lua));
        const disagreements = asked
          .map(({ memory }, at) => ({ at, step: history[at], memory, lua: answers[at]! }))
          .filter(({ memory, lua: answer }) => !sameVerdict(memory, answer));
        expect({ seed, index, spec, disagreements }).toMatchObject({ disagreements: [] });
        pair.close();
      }
    },
    120_000,
  );

  it.each(algorithms)('agree on %s in histories that shrink', async (_name, code) => {
    const histories = specs(code).chain((spec) =>
      fc.tuple(fc.constant(spec), fc.array(steps(spec), { maxLength: 30 })),
    );
    await fc.assert(
      fc.asyncProperty(histories, async ([spec, history]) => {
        const pair = new Pair(spec, lua);
        for (const step of history) {
          const { memory, lua: answer } = pair.step(step);
          expect(await answer).toEqual(memory);
        }
        pair.close();
      }),
      { numRuns: 200 },
    );
  });

  it.each(algorithms)('agree on %s whose figures come with the requests', async (_name, code) => {
    const histories = fc
      .array(specs(code), { minLength: 1, maxLength: 3 })
      .chain((sets) =>
        fc.tuple(
          fc.constant(sets),
          fc.array(fc.tuple(fc.nat({ max: sets.length - 1 }), steps(sets[0]!)), { maxLength: 40 }),
        ),
      );
    await fc.assert(
      fc.asyncProperty(histories, async ([sets, history]) => {
        const pair = new GivenPair(sets[0]!, lua);
        for (const [set, step] of history) {
          const { memory, lua: answer } = pair.step(sets[set]!, step);
          expect(await answer).toEqual(memory);
        }
        pair.close();
      }),
      { numRuns: 100 },
    );
  });
});
