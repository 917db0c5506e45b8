import fc from 'fast-check';
import { createRateLimiter, type Decision, type PolicyInput } from 'nestjs-weir';
import { now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

/** The figures that the bound is made of. */
interface Figures {
  readonly rate: number;
  readonly periodMs: number;
  readonly capacity: number;
  readonly subWindows: number;
}

type Step =
  | { readonly kind: 'take'; readonly cost: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'change'; readonly to: number };

const figures: fc.Arbitrary<Figures> = fc.record({
  rate: fc.integer({ min: 1, max: 300 }),
  periodMs: fc.constantFrom(100, 1000, 7000, 60_000),
  capacity: fc.integer({ min: 1, max: 100 }),
  subWindows: fc.constantFrom(2, 5, 5, 10),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('take'), cost: fc.integer({ min: 1, max: 100 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait'),
      ms: fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: 3000 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('change'), to: fc.nat({ max: 2 }) }),
  },
);

interface Taken {
  readonly atMs: number;
  /** Of the capacity that the limit had then. */
  readonly part: number;
  /** Parts of the capacity that had come back since the beginning, as each limit in turn had it. */
  readonly refilled: number;
}

type PolicyOf = (figures: Figures) => PolicyInput;

/** Plays a history, and notes what was allowed. */
function play(policyOf: PolicyOf, limits: readonly Figures[], steps: readonly Step[]): Taken[] {
  const clock = new ManualClock();
  const limiter = createRateLimiter({ policies: { p: policyOf(limits[0]!) }, clock });
  const taken: Taken[] = [];
  let [current, atMs, refilled, revision] = [limits[0]!, 0, 0, 0];
  for (const one of steps) {
    if (one.kind === 'wait') {
      clock.advance(one.ms);
      atMs += one.ms;
      refilled += (one.ms * current.rate) / current.periodMs / current.capacity;
    } else if (one.kind === 'change') {
      current = limits[one.to]!;
      limiter.prepare({ revision: ++revision, policies: { p: policyOf(current) } })();
    } else {
      const capacity = limiter.policy('p')!.base.capacity;
      const cost = Math.min(one.cost, capacity);
      const { allowed, remaining } = now(limiter.tryAcquire({ policy: 'p', key: 'k', cost }));
      if (!(remaining >= 0 && remaining <= capacity)) throw new Error(`${remaining} tokens left`);
      if (allowed) taken.push({ atMs, part: cost / capacity, refilled });
    }
  }
  void limiter.close();
  return taken;
}

const ROUNDING = 1e-9;

/** The parts of a bucket that were taken in any span, less those that flowed in meanwhile. */
function worstSpan(taken: readonly Taken[]): number {
  let [worst, sum, refilled] = [0, 0, 0];
  for (const take of taken) {
    sum = Math.max(0, sum - (take.refilled - refilled)) + take.part;
    refilled = take.refilled;
    worst = Math.max(worst, sum);
  }
  return worst;
}

/** The parts of a window that were taken in any span of that length. */
function worstWindow(taken: readonly Taken[], spanMs: number): number {
  const sums = taken.map(({ atMs }) => {
    const within = taken.filter((one) => one.atMs >= atMs && one.atMs - atMs < spanMs);
    return within.reduce((sum, { part }) => sum + part, 0);
  });
  return Math.max(0, ...sums);
}

const asBucket = ({ rate, periodMs, capacity }: Figures) => {
  return { rate, period: periodMs, burst: capacity };
};

const buckets: [name: string, policyOf: PolicyOf][] = [
  ['token bucket', asBucket],
  ['leaky policer', (figures) => ({ ...asBucket(figures), algorithm: 'leaky-bucket' })],
  [
    'leaky shaper',
    (figures) => {
      const maxDelay = figures.periodMs / 4;
      return { ...asBucket(figures), algorithm: 'leaky-bucket', mode: 'shaper', maxDelay };
    },
  ],
];

const histories = fc.tuple(
  fc.array(figures, { minLength: 3, maxLength: 3 }),
  fc.array(step, { maxLength: 60, size: 'max' }),
);

/**
 * A bucket stays as full as it was. So what is allowed in any span, each take as a part of the
 * capacity that it was taken from, is at most one bucket and the parts that flowed in meanwhile:
 * Σ cost / capacity ≤ 1 + ∫ rate / capacity. For limits that fill in the same time that is the bound
 * of the larger one; and under one limit alone, so also after the last change, it is its own.
 */
describe('the bound of limits that change', () => {
  it.each(buckets)('%s: holds in any span of any history', (_name, policyOf) => {
    fc.assert(
      fc.property(histories, ([limits, steps]) => {
        const taken = play(policyOf, limits, steps);
        expect(worstSpan(taken)).toBeLessThanOrEqual(1 + ROUNDING);
      }),
      { numRuns: 300 },
    );
  });

  /** A window forgets as a whole, so there the span is bounded instead of the inflow. */
  it('sliding window: one window in any span shorter than the shortest of them', () => {
    const policyOf: PolicyOf = ({ rate, periodMs, subWindows }) => ({
      algorithm: 'sliding-window',
      rate,
      period: periodMs,
      subWindows,
    });
    fc.assert(
      fc.property(histories, ([limits, steps]) => {
        const taken = play(policyOf, limits, steps);
        const spans = limits.map(({ periodMs, subWindows }) => periodMs - periodMs / subWindows);
        expect(worstWindow(taken, Math.min(...spans))).toBeLessThanOrEqual(1 + ROUNDING);
      }),
      { numRuns: 300 },
    );
  });

  it('a policy that stays the same answers as if nothing else had changed', () => {
    const steady: PolicyInput = { rate: 50, burst: 20, tiers: { vip: 200 } };
    fc.assert(
      fc.property(histories, ([limits, steps]) => {
        const clock = new ManualClock();
        const other = limits.map(({ rate, periodMs }) => ({ rate, period: periodMs }));
        const alone = createRateLimiter({ policies: { steady }, clock });
        const beside = createRateLimiter({ policies: { steady, other: other[0]! }, clock });
        const ask = (limiter: typeof alone, cost: number): Decision[] =>
          [undefined, 'vip'].map((tier) => {
            const fits = Math.min(cost, 20);
            return now(limiter.tryAcquire({ policy: 'steady', key: 'k', tier, cost: fits }));
          });
        steps.forEach((one, index) => {
          if (one.kind === 'wait') clock.advance(one.ms);
          else if (one.kind === 'take') expect(ask(beside, one.cost)).toEqual(ask(alone, one.cost));
          else {
            const policies = { steady: { ...steady }, other: other[one.to]! };
            beside.prepare({ revision: index + 1, policies })();
          }
        });
        expect(beside.stats().policies.steady).toEqual(alone.stats().policies.steady);
        void alone.close();
        void beside.close();
      }),
      { numRuns: 150 },
    );
  });
});
