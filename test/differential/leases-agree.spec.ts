import fc from 'fast-check';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import {
  generationAt,
  leaseTokens,
  oweLeased,
  rebaseLeased,
  refundLeased,
  refundLeasedLate,
  settleLeased,
  startLeased,
  takeLeased,
  type LeasedState,
  type LeaseReport,
} from '../../lib/algorithms/leased-bucket.js';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { CallKind, type SharedLimit } from '../../lib/stores/remote-store.js';
import { LuaSide } from '../support/differential.js';
import { startRedis, stopAll } from '../support/index.js';
import { compileLimit, type LimitSpec } from '../support/limits.js';

const STEPS = 120_000;
const STEPS_PER_LIMIT = 400;
const START_MICROS = 1_700_000_000_000_000;

type Step = {
  readonly gapMicros: number;
  readonly cost: number;
  readonly key: string;
} & (
  | { readonly kind: 'take' | 'peek' | 'refund' | 'debt' }
  | { readonly kind: 'late refund'; readonly ageMicros: number }
  | { readonly kind: 'lease'; readonly generationsBack: number; readonly figures: number[] }
);

const figure = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 1, max: 1_000_000 }),
  fc.constantFrom(1, 7, 60, 1000, 999_983, 1_000_000),
);

const specs: fc.Arbitrary<LimitSpec> = fc.record({
  algorithm: fc.constant(AlgorithmCode.TokenBucket),
  rate: fc.oneof(figure, fc.double({ min: 0.1, max: 1000, noNaN: true })),
  periodMs: fc.oneof(fc.constantFrom(1000, 60_000), fc.integer({ min: 1, max: 100_000 })),
  burst: figure,
  maxDelayMs: fc.constant(Infinity),
  subWindows: fc.constant(1),
});

/** Gaps within a generation, across one or two, to their very edge, and back. */
function steps({ burst }: LimitSpec): fc.Arbitrary<Step> {
  const tokens = fc.oneof(fc.constant(0), fc.nat({ max: 3 }), fc.nat({ max: burst }));
  const common = {
    gapMicros: fc.oneof(
      { weight: 5, arbitrary: fc.integer({ min: 0, max: 300_000 }) },
      { weight: 2, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.constantFrom(1_000_000, 2_000_000) },
      { weight: 1, arbitrary: fc.integer({ min: 500_000, max: 5_000_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: -3_000_000, max: 0 }) },
      { weight: 1, arbitrary: fc.constantFrom(-1_000_000, -1_000_001, -3_600_000_000) },
    ),
    key: fc.constantFrom('a', 'b'),
    cost: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: burst })),
  };
  return fc.oneof(
    {
      weight: 1,
      arbitrary: fc.oneof(
        {
          weight: 6,
          arbitrary: fc.record({
            ...common,
            kind: fc.constantFrom('take', 'take', 'take', 'peek', 'refund', 'debt'),
          }),
        },
        {
          weight: 1,
          arbitrary: fc.record({
            ...common,
            kind: fc.constant('late refund' as const),
            ageMicros: fc.oneof(fc.nat({ max: 5000 }), fc.integer({ min: -1000, max: 2_000_000 })),
          }),
        },
      ),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        ...common,
        kind: fc.constant('lease' as const),
        generationsBack: fc.integer({ min: -1, max: 3 }),
        figures: fc.array(tokens, { minLength: 5, maxLength: 5 }),
      }),
    },
  );
}

/** The pure functions on one side, the script on the other, step by step. */
class LeasedPair {
  private readonly states = new Map<string, LeasedState>();
  private now = START_MICROS;
  private readonly limit: Limit;
  private readonly shared: SharedLimit;

  constructor(
    spec: LimitSpec,
    name: string,
    private readonly lua: LuaSide,
  ) {
    // Redis forgets by its own clock, which here runs on while the injected one stands still.
    this.limit = { ...compileLimit(spec), ttlMs: 1e9 };
    this.shared = { id: name, figures: this.limit, revision: 0 };
  }

  step(step: Step): { here: unknown; lua: Promise<unknown> } {
    this.now += step.gapMicros;
    const { limit, shared, now } = this;
    const { key } = step;
    const known = this.states.get(key);
    const state = known ?? startLeased(limit, now);
    if (step.kind === 'lease') return this.lease(step, state);
    const cost = Math.min(step.cost, limit.capacity);
    if (step.kind === 'refund') {
      if (known !== undefined) this.states.set(key, refundLeased(limit, state, now, cost));
      const here = { allowed: true, level: 0, waitMicros: 0 };
      return { here, lua: this.lua.ask(CallKind.Refund, shared, key, cost, now) };
    }
    if (step.kind === 'debt') {
      this.states.set(key, oweLeased(limit, state, now, cost));
      const here = { allowed: true, level: 0, waitMicros: 0 };
      return { here, lua: this.lua.ask(CallKind.Debt, shared, key, cost, now) };
    }
    if (step.kind === 'late refund') {
      const takenAt = now - step.ageMicros;
      const after = refundLeasedLate(limit, state, now, cost, takenAt);
      if (known !== undefined) this.states.set(key, after);
      const here = { allowed: true, level: 0, waitMicros: 0 };
      return { here, lua: this.lua.ask(CallKind.LateRefund, shared, key, cost, now, takenAt) };
    }
    const outcome = new Outcome();
    outcome.nowMicros = now;
    const after = takeLeased(limit, state, cost, outcome);
    if (step.kind === 'take' && outcome.allowed) this.states.set(key, after);
    else if (known !== undefined) this.states.set(key, rebaseLeased(known, now));
    const { allowed, level, waitMicros } = outcome;
    const kind = step.kind === 'take' ? CallKind.Take : CallKind.Peek;
    return {
      here: { allowed, level, waitMicros },
      lua: this.lua.ask(kind, shared, key, cost, now),
    };
  }

  private lease(
    { key, generationsBack, figures }: Step & { kind: 'lease' },
    state: LeasedState,
  ): { here: unknown; lua: Promise<unknown> } {
    const { limit, shared, now } = this;
    const [want = 0, used = 0, returned = 0, olderUsed = 0, olderReturned = 0] = figures;
    const generation = generationAt(now + state.aheadMicros) - generationsBack;
    const report: LeaseReport = { generation, used, returned, olderUsed, olderReturned };
    const after = leaseTokens(limit, state, now, report, want);
    if (after.state !== state) this.states.set(key, after.state);
    return { here: after.grant, lua: this.lua.lease({ limit: shared, key, want, report }, now) };
  }
}

describe('the Lua script and the pure functions, on buckets of which tokens are leased', () => {
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

  it(`agree over ${STEPS.toLocaleString('en')} random steps`, async () => {
    const seed = Number(process.env.WEIR_SEED ?? Date.now() % 2 ** 31);
    const limits = fc.sample(specs, { numRuns: STEPS / STEPS_PER_LIMIT, seed });
    let granted = 0;
    for (const [index, spec] of limits.entries()) {
      const pair = new LeasedPair(spec, `leased${pairs++}`, lua);
      const history = fc.sample(steps(spec), { numRuns: STEPS_PER_LIMIT, seed: seed + index });
      const asked = history.map((step) => pair.step(step));
      const answers = await Promise.all(asked.map((step) => step.lua));
      const disagreements = asked
        .map(({ here }, at) => ({ at, step: history[at], here, lua: answers[at] }))
        .filter((found) => JSON.stringify(found.here) !== JSON.stringify(found.lua));
      expect({ seed, index, spec, disagreements }).toMatchObject({ disagreements: [] });
      granted += answers.filter((answer) => (answer as { granted?: number }).granted! > 0).length;
    }
    // A history in which nobody ever got a lease would prove nothing.
    expect(granted).toBeGreaterThan(STEPS / 20);
  }, 120_000);

  it('agree in histories that shrink', async () => {
    const histories = specs.chain((spec) =>
      fc.tuple(fc.constant(spec), fc.array(steps(spec), { maxLength: 30 })),
    );
    await fc.assert(
      fc.asyncProperty(histories, async ([spec, history]) => {
        const pair = new LeasedPair(spec, `leased${pairs++}`, lua);
        for (const step of history) {
          const { here, lua: answer } = pair.step(step);
          expect(await answer).toEqual(here);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('never hold more than a full bucket, in it and on lease', () => {
    const histories = specs.chain((spec) =>
      fc.tuple(fc.constant(spec), fc.array(steps(spec), { maxLength: 60 })),
    );
    fc.assert(
      fc.property(histories, ([spec, history]) => {
        const limit = compileLimit(spec);
        let now = START_MICROS;
        let state = startLeased(limit, now);
        for (const step of history) {
          now += step.gapMicros;
          if (step.kind === 'lease') {
            const [want = 0, used = 0, returned = 0, olderUsed = 0, olderReturned = 0] =
              step.figures;
            const generation = generationAt(now + state.aheadMicros) - step.generationsBack;
            const report = { generation, used, returned, olderUsed, olderReturned };
            state = leaseTokens(limit, state, now, report, want).state;
          } else if (step.kind === 'refund') {
            state = refundLeased(limit, state, now, step.cost);
          }
          const { level, current, previous } = settleLeased(limit, state, now);
          expect(level).toBeGreaterThanOrEqual(0);
          expect(Math.min(current, previous)).toBeGreaterThanOrEqual(0);
          expect(level + (current + previous) * limit.perToken).toBeLessThanOrEqual(limit.full);
        }
      }),
    );
  });
});
