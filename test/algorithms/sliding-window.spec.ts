import fc from 'fast-check';
import { Bench } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const window = (rate: number, period: string | number, subWindows = 10): Bench =>
  new Bench(
    { algorithm: 'sliding-window', rate, period, subWindows },
    'memory',
    new ManualClock(0, 0),
  );

describe('sliding window', () => {
  it('V-E9: the 1001st of one parameter is blocked, another parameter is not', () => {
    const bench = window(1000, '1s');
    expect(bench.takeMany(1001)).toBe(1000);
    expect(bench.take(1, { key: 'another' }).allowed).toBe(true);
  });

  it('V-E10: a full end of one second leaves nothing for the start of the next', () => {
    const bench = window(1000, '1s');
    bench.clock.advance(900);
    expect(bench.takeMany(1000)).toBe(1000);
    bench.clock.advance(100);
    expect(bench.takeMany(1000)).toBe(0);
    bench.clock.advance(99);
    expect(bench.takeMany(1000)).toBe(0);
  });

  it('V-E11: 800 before, 300 now, a quarter in: 900 count', () => {
    const bench = window(1000, '1s', 1);
    expect(bench.takeMany(800)).toBe(800);
    bench.clock.advance(1000 + 250);
    // At a quarter 600 of the 800 still count, so 300 fit.
    expect(bench.takeMany(300)).toBe(300);
    expect(bench.peek()).toMatchObject({ allowed: true, remaining: 100 });
    expect(bench.peek(101).allowed).toBe(false);
  });

  it('counts the oldest part in proportion, whatever the number of parts', () => {
    const bench = window(1000, '1s', 4);
    expect(bench.takeMany(400)).toBe(400);
    bench.clock.advance(1000 + 125);
    expect(bench.peek().remaining).toBe(800);
    bench.clock.advance(125);
    expect(bench.peek().remaining).toBe(1000);
  });

  it('says exactly when the same request would pass', () => {
    const bench = window(10, '1s');
    bench.take(10);
    expect(bench.take(4)).toMatchObject({ allowed: false, retryAfterMs: 1040 });
    bench.clock.advance(1039);
    expect(bench.take(4).allowed).toBe(false);
    bench.clock.advance(1);
    expect(bench.take(4).allowed).toBe(true);
  });

  it('forgets everything one period and one part after the last request', () => {
    const bench = window(10, '1s');
    expect(bench.take(10).resetMs).toBe(1100);
    bench.clock.advance(1100);
    expect(bench.peek()).toMatchObject({ remaining: 10, resetMs: 0 });
  });

  it('V-D11: time that steps back frees nothing', () => {
    const bench = window(10, '1s');
    bench.clock.advance(5000);
    bench.take(10);
    bench.clock.jump(-3_000_000);
    expect(bench.take().allowed).toBe(false);
    bench.clock.jump(3_000_000);
    expect(bench.take().allowed).toBe(false);
  });

  it('gives back the newest first, and never more than was taken', () => {
    const bench = window(10, '1s');
    bench.take(3);
    bench.clock.advance(500);
    bench.take(4);
    void bench.limiter.refund({ policy: 'p', key: 'k', cost: 5 });
    expect(bench.peek().remaining).toBe(8);
    void bench.limiter.refund({ policy: 'p', key: 'k', cost: 9 });
    expect(bench.peek().remaining).toBe(10);
  });

  const histories = fc.record({
    rate: fc.integer({ min: 1, max: 50 }),
    periodMs: fc.integer({ min: 10, max: 10_000 }),
    subWindows: fc.integer({ min: 1, max: 20 }),
    steps: fc.array(
      fc.record({ gapMicros: fc.integer({ min: 0, max: 2_000_000 }), cost: fc.nat({ max: 9 }) }),
      { maxLength: 80 },
    ),
  });

  it('property: in any span one part shorter than the period at most the limit is taken', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, subWindows, steps }) => {
        const bench = window(rate, periodMs, subWindows);
        const partMicros = Math.ceil((periodMs * 1000) / subWindows);
        const spanMicros = partMicros * (subWindows - 1);
        const taken: { at: number; cost: number }[] = [];
        for (const { gapMicros, cost } of steps) {
          bench.clock.jump(gapMicros);
          const fits = Math.min(rate, cost + 1);
          if (bench.take(fits).allowed) taken.push({ at: bench.clock.now(), cost: fits });
        }
        for (const { at: end } of taken) {
          const inSpan = taken.filter(({ at }) => at <= end && at >= end - spanMicros);
          expect(inSpan.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(rate);
        }
      }),
    );
  });

  it('property: waiting retryAfterMs is enough, two milliseconds less is not, a denial changes nothing', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, subWindows, steps }) => {
        const bench = window(rate, periodMs, subWindows);
        for (const { gapMicros, cost } of steps) {
          bench.clock.jump(gapMicros);
          const fits = Math.min(rate, cost + 1);
          const before = bench.peek(fits);
          const decision = bench.take(fits);
          expect(decision.allowed).toBe(before.allowed);
          if (decision.allowed) continue;
          expect(bench.peek(fits)).toEqual(before);
          const almost = Math.max(0, decision.retryAfterMs - 2) * 1000;
          bench.clock.jump(almost);
          if (decision.retryAfterMs > 2) expect(bench.peek(fits).allowed).toBe(false);
          bench.clock.jump(decision.retryAfterMs * 1000 - almost);
          expect(bench.peek(fits).allowed).toBe(true);
        }
      }),
    );
  });
});
