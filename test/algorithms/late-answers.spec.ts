import fc from 'fast-check';
import { algorithmOf } from '../../lib/algorithms/algorithm-of.js';
import { Outcome, type Algorithm } from '../../lib/algorithms/algorithm.js';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { compileLimit } from '../support/limits.js';

const START = 1_700_000_000_000_000;

/** One bucket or window on a clock of our own. */
class Counted {
  private readonly state: Float64Array;
  private readonly algorithm: Algorithm;
  private readonly outcome = new Outcome();

  constructor(private readonly limit: Limit) {
    this.algorithm = algorithmOf(limit.algorithm);
    this.state = new Float64Array(this.algorithm.width(limit));
    this.algorithm.start(limit, this.state, 0, START);
  }

  measure(now: number, cost: number): Outcome {
    this.outcome.nowMicros = now;
    this.algorithm.measure(this.limit, this.state, 0, cost, this.outcome);
    return this.outcome;
  }

  take(now: number, cost: number): boolean {
    const outcome = this.measure(now, cost);
    if (outcome.allowed) this.algorithm.commit(this.limit, this.state, 0, cost, outcome);
    return outcome.allowed;
  }

  refundLate(now: number, cost: number, takenAt: number): void {
    this.algorithm.refundLate(this.limit, this.state, 0, now, cost, takenAt);
  }

  owe(now: number, cost: number): void {
    this.algorithm.owe(this.limit, this.state, 0, now, cost);
  }

  /** Units that are there now. */
  level(now: number): number {
    const { allowed, level } = this.measure(now, 1);
    return allowed ? level + this.limit.perToken : level;
  }
}

const ALGORITHMS: [name: string, code: AlgorithmCode][] = [
  ['token bucket', AlgorithmCode.TokenBucket],
  ['leaky policer', AlgorithmCode.LeakyPolicer],
  ['leaky shaper', AlgorithmCode.LeakyShaper],
  ['sliding window', AlgorithmCode.SlidingWindow],
];

function limits(algorithm: AlgorithmCode): fc.Arbitrary<Limit> {
  return fc
    .record({
      algorithm: fc.constant(algorithm),
      rate: fc.integer({ min: 1, max: 500 }),
      periodMs: fc.constantFrom(1000, 60_000),
      burst: fc.integer({ min: 1, max: 100 }),
      maxDelayMs: fc.constant(Infinity),
      subWindows: fc.integer({ min: 2, max: 10 }),
    })
    .map(compileLimit);
}

const step = fc.record({
  gapMicros: fc.oneof(fc.constant(0), fc.nat({ max: 20_000 }), fc.nat({ max: 1_000_000 })),
  kind: fc.constantFrom('used', 'used', 'unused', 'unused', 'back'),
  cost: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 100 })),
});

describe.each(ALGORITHMS)('%s, and answers that came late', (_name, code) => {
  it('property: unused takes that go back late leave no more than if they had not been', () => {
    let given = 0;
    fc.assert(
      fc.property(limits(code), fc.array(step, { maxLength: 80, size: 'max' }), (limit, steps) => {
        const [real, ideal] = [new Counted(limit), new Counted(limit)];
        const unused: { takenAt: number; cost: number }[] = [];
        let now = START;
        for (const { gapMicros, kind, cost } of steps) {
          now += gapMicros;
          const fits = Math.min(cost, limit.capacity);
          if (kind === 'used' && real.take(now, fits)) expect(ideal.take(now, fits)).toBe(true);
          if (kind === 'unused' && real.take(now, fits)) unused.push({ takenAt: now, cost: fits });
          const back = kind === 'back' ? unused.shift() : undefined;
          if (back !== undefined) {
            const before = real.level(now);
            real.refundLate(now, back.cost, back.takenAt);
            given += real.level(now) - before;
          }
          expect(real.level(now)).toBeLessThanOrEqual(ideal.level(now));
        }
      }),
    );
    expect(given).toBeGreaterThan(0);
  });

  it('gives back the whole of a take at the same instant, and nothing if the clock stepped back', () => {
    const limit = compileLimit({
      algorithm: code,
      rate: 10,
      periodMs: 1000,
      burst: 10,
      maxDelayMs: Infinity,
      subWindows: 10,
    });
    const counted = new Counted(limit);
    counted.take(START, 7);
    counted.refundLate(START, 7, START + 1_000_000);
    expect(counted.level(START)).toBe(3 * limit.perToken);
    counted.refundLate(START, 7, START);
    expect(counted.level(START)).toBe(limit.full);
  });

  it('property: a debt is one limit at most, and the wait that it makes is true', () => {
    fc.assert(
      fc.property(limits(code), fc.array(step, { maxLength: 40 }), (limit, steps) => {
        const counted = new Counted(limit);
        let now = START;
        for (const { gapMicros, kind, cost } of steps) {
          now += gapMicros;
          const fits = Math.min(cost, limit.capacity);
          if (kind === 'used') counted.take(now, fits);
          else counted.owe(now, fits);
          const { allowed, level, waitMicros } = counted.measure(now, fits);
          expect(level).toBeGreaterThanOrEqual(0);
          if (allowed) continue;
          expect(counted.measure(now + waitMicros - 1, fits).allowed).toBe(false);
          expect(counted.measure(now + waitMicros, fits).allowed).toBe(true);
        }
        for (let i = 0; i < 300; i++) counted.owe(now, limit.capacity);
        // From one limit below empty it takes two fillings until all is back.
        const { waitMicros } = counted.measure(now, limit.capacity);
        expect(waitMicros).toBeLessThanOrEqual(limit.ttlMs * 1000);
        expect(counted.measure(now + waitMicros, limit.capacity).allowed).toBe(true);
      }),
    );
  });
});
