import fc from 'fast-check';
import { createRateLimiter, type PolicyFields, type PolicyInput } from 'nestjs-weir';
import { refusal } from '../support/errors.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const ADAPTIVE: PolicyInput = { rate: 10_000, scope: 'node', adaptive: true };

const ALGORITHMS: [string, PolicyFields][] = [
  ['token bucket', {}],
  ['leaky bucket', { algorithm: 'leaky-bucket' }],
  ['shaper', { algorithm: 'leaky-bucket', mode: 'shaper' }],
  ['sliding window', { algorithm: 'sliding-window' }],
];

describe('an adaptive policy', () => {
  it.each(ALGORITHMS)('E-41: admits 10,000 idle, 8,750 and 5,000 under load: %s', (_, policy) => {
    for (const [factor, admitted] of [
      [1, 10_000],
      [0.875, 8750],
      [0.5, 5000],
    ] as const) {
      const bench = new Bench({ ...ADAPTIVE, ...policy });
      bench.limiter.load(factor);
      const passed = bench.takeMany(10_010);
      // A part of a token is no exact figure.
      expect(passed).toBeLessThanOrEqual(admitted);
      expect(passed).toBeGreaterThanOrEqual(admitted - 1);
    }
  });

  it('tells the limit that is left, and leaves other policies alone', () => {
    const limiter = createRateLimiter({
      clock: new ManualClock(),
      policies: { p: { ...ADAPTIVE, rate: 100 }, q: { rate: 100 } },
    });
    const take = (policy: string) => now(limiter.tryAcquire({ policy, key: 'k' }));
    limiter.load(0.55);
    expect(take('p')).toMatchObject({ limit: 55, remaining: 53 });
    expect(take('q')).toMatchObject({ limit: 100, remaining: 99 });
    expect(now(limiter.peek({ policy: 'p', key: 'k' }))).toMatchObject({ limit: 55 });
    limiter.load(1);
    expect(take('p')).toMatchObject({ limit: 100, remaining: 97 });
    expect(limiter.isAdaptive).toBe(true);
    limiter.prepare({ policies: { p: { rate: 100, scope: 'node' } }, revision: 1 })();
    expect(limiter.isAdaptive).toBe(false);
  });

  it('never charges more than the bucket holds', () => {
    const bench = new Bench({ ...ADAPTIVE, rate: 10 });
    bench.limiter.load(0.5);
    expect(bench.take(8)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('is all or nothing with others, and is given back what it was charged', () => {
    const limiter = createRateLimiter({
      clock: new ManualClock(),
      policies: { p: { ...ADAPTIVE, rate: 10 }, few: { rate: '1/h' } },
    });
    const both = [
      { policy: 'p', key: 'k' },
      { policy: 'few', key: 'k' },
    ];
    limiter.load(0.8);
    expect(now(limiter.tryAcquire(both)).allowed).toBe(true);
    for (let i = 0; i < 5; i++) expect(now(limiter.tryAcquire(both)).allowed).toBe(false);
    limiter.load(1);
    expect(now(limiter.peek(both[0]!)).remaining).toBe(8);
  });

  it('gets back no more than the plain cost by a refund, so that no change of load mints tokens', () => {
    const bench = new Bench({ ...ADAPTIVE, rate: 10 });
    const decision = bench.take(4);
    bench.limiter.load(0.5);
    now(bench.limiter.refund({ policy: 'p', key: 'k', cost: 4 }, decision));
    bench.limiter.load(1);
    bench.take(10);
    expect(bench.take(1).allowed).toBe(false);
  });

  it.each(ALGORITHMS)(
    'holds its limit whatever the load does, and recovers whole: %s',
    (_, policy) => {
      const step = fc.record({
        factor: fc.integer({ min: 1, max: 20 }).map((n) => n / 20),
        cost: fc.integer({ min: 1, max: 7 }),
        passedMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 })),
      });
      fc.assert(
        fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
          const bench = new Bench({ ...ADAPTIVE, ...policy, rate: 20 });
          const taken: { at: number; tokens: number }[] = [];
          for (const { factor, cost, passedMs } of steps) {
            bench.clock.advance(passedMs);
            bench.limiter.load(factor);
            const at = bench.clock.now();
            if (bench.take(cost).allowed) taken.push({ at, tokens: Math.min(20, cost / factor) });
            // A bucket admits its burst and what flows in; a window no more in nine tenths of its period.
            const isWindow = policy.algorithm === 'sliding-window';
            const since = taken.filter((one) => one.at > at - 900_000);
            const sum = since.reduce((total, one) => total + one.tokens, 0);
            expect(sum).toBeLessThanOrEqual((isWindow ? 20 : 20 + 18) + 1e-6);
          }
          bench.clock.advance(3000);
          bench.limiter.load(1);
          expect(bench.peek(20)).toMatchObject({ allowed: true, remaining: 20 });
          expect(bench.peek(20).resetMs).toBe(0);
          // As good as new, so that it may be forgotten: nothing is left of any fraction.
          bench.clock.advance(310_000);
          expect(bench.limiter.stats().keys).toBe(0);
        }),
        { numRuns: 25 },
      );
    },
  );

  it.each([0, -1, 1.1, NaN, '0.5', undefined])('refuses the factor %p', (factor) => {
    const { limiter } = new Bench(ADAPTIVE);
    expect(() => limiter.load(factor as number)).toThrow(refusal('factor', factor));
  });

  it('is refused for a fleet: its limit is a contract', () => {
    const policies = { p: { rate: 1, adaptive: true } };
    expect(() => createRateLimiter({ policies })).toThrow(refusal('policies.p.adaptive', true));
    const odd = { p: { ...ADAPTIVE, adaptive: 'yes' as never } };
    expect(() => createRateLimiter({ policies: odd })).toThrow(
      refusal('policies.p.adaptive', 'yes'),
    );
  });
});
