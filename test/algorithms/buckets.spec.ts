import fc from 'fast-check';
import { createRateLimiter, type Decision } from 'nestjs-weir';
import { LeakyBucket, SlidingWindow, TokenBucket } from 'nestjs-weir/algorithms';
import { ManualClock } from '../support/manual-clock.js';

describe('a bucket by itself', () => {
  it('TokenBucket(100, 10): full at first, ten tokens a second (D-24)', () => {
    const bucket = new TokenBucket({ capacity: 100, rate: 10 });
    expect(bucket.take(0, 100)).toEqual({ allowed: true, remaining: 0, waitMs: 0 });
    expect(bucket.take(0)).toEqual({ allowed: false, remaining: 0, waitMs: 100 });
    expect(bucket.peek(500)).toEqual({ allowed: true, remaining: 4, waitMs: 0 });
    expect(bucket.take(500, 5).allowed).toBe(true);
    bucket.refund(500, 2);
    expect([bucket.take(500, 2).allowed, bucket.capacity]).toEqual([true, 100]);
  });

  it('LeakyBucket(100, 10): denies what would run over, or makes it wait (D-24)', () => {
    const policer = new LeakyBucket({ capacity: 100, rate: 10 });
    expect(policer.take(0, 100).allowed).toBe(true);
    expect(policer.take(0)).toEqual({ allowed: false, remaining: 0, waitMs: 100 });
    const shaper = new LeakyBucket({ capacity: 5, rate: 10, mode: 'shaper', maxDelay: 150 });
    expect([0, 1, 2].map(() => shaper.take(0))).toMatchObject([
      { allowed: true, waitMs: 0 },
      { allowed: true, waitMs: 100 },
      { allowed: false, waitMs: 50 },
    ]);
  });

  it('SlidingWindow: so many in any period', () => {
    const window = new SlidingWindow({ capacity: 2, period: '1s', subWindows: 10 }, 1000);
    expect([0, 1, 2].map(() => window.take(1000).allowed)).toEqual([true, true, false]);
    expect([window.take(1999).allowed, window.take(2000).allowed]).toEqual([false, true]);
  });

  it('decides as a policy of the same figures does', () => {
    const steps = fc.array(
      fc.record({ ms: fc.integer({ min: 0, max: 400 }), cost: fc.integer({ min: 1, max: 4 }) }),
      {
        maxLength: 60,
      },
    );
    const figures = { rate: 10, period: '1s' } as const;
    fc.assert(
      fc.property(
        steps,
        fc.constantFrom('token-bucket', 'leaky-bucket', 'sliding-window'),
        (all, algorithm) => {
          const clock = new ManualClock();
          const kind =
            algorithm === 'sliding-window' ? ({ algorithm } as const) : { algorithm, burst: 5 };
          const limiter = createRateLimiter({
            clock,
            policies: { p: { ...figures, ...kind } },
          });
          const from = clock.now() / 1000;
          const bucket =
            algorithm === 'token-bucket'
              ? new TokenBucket({ capacity: 5, rate: 10 }, from)
              : algorithm === 'leaky-bucket'
                ? new LeakyBucket({ capacity: 5, rate: 10 }, from)
                : new SlidingWindow({ capacity: 10 }, from);
          for (const { ms, cost } of all) {
            clock.advance(ms);
            const decision = limiter.tryAcquire({ policy: 'p', key: 'k', cost }) as Decision;
            const { allowed, remaining } = bucket.take(clock.now() / 1000, cost);
            expect([allowed, remaining]).toEqual([decision.allowed, decision.remaining]);
          }
          void limiter.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  it.each<[() => unknown, string]>([
    [() => new TokenBucket({ capacity: 0, rate: 1 }), 'tokenBucket.capacity'],
    [() => new TokenBucket({ capacity: 1, rate: 0 }), 'tokenBucket.rate'],
    [() => new TokenBucket({ capacity: 1, rate: 1, burst: 5 } as never), 'tokenBucket.burst'],
    [() => new LeakyBucket({ capacity: 1, rate: 1, mode: 'x' as never }), 'leakyBucket.mode'],
    [() => new LeakyBucket({ capacity: 1, rate: 1, maxDelay: 5 }), 'leakyBucket.maxDelay'],
    [() => new SlidingWindow({ capacity: 1, subWindows: 1 }), 'slidingWindow.subWindows'],
    [() => new TokenBucket({ capacity: 1, rate: 1 }).take(0, 2), 'cost'],
    [() => new TokenBucket({ capacity: 1, rate: 1 }).take(0, 0.5), 'cost'],
  ])('says what cannot work: %s', (wrong, field) => {
    expect(wrong).toThrow(field);
  });
});
