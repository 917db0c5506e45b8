import fc from 'fast-check';
import { type Decision, type Duration, type Rate } from 'nestjs-weir';
import { Bench } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const window = (rate: number, period: Duration, subWindows = 10): Bench =>
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

  it('V-E11: 800 before, 300 now: nothing is weighted, the 800 count whole until they are gone', () => {
    const bench = window(1000, '1s', 4);
    expect(bench.takeMany(800)).toBe(800);
    bench.clock.advance(999);
    expect(bench.takeMany(300)).toBe(200);
    expect(bench.peek()).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 1 });
    bench.clock.advance(1);
    expect(bench.peek().remaining).toBe(800);
  });

  it.each<[Rate, number]>([
    ['1/s', 1000],
    ['5/10s', 2000],
    ['5/h', 720_000],
    ['10/min', 6000],
    ['100/s', 10],
    ['1/d', 86_400_000],
  ])('lets a caller pass that keeps to %s by asking every %i ms', (rate, everyMs) => {
    const bench = new Bench({ algorithm: 'sliding-window', rate }, 'memory', new ManualClock(0, 0));
    bench.clock.advance(437);
    let passed = 0;
    for (let asked = 0; asked < 100; asked++) {
      if (bench.take().allowed) passed++;
      bench.clock.jump(everyMs * 1000);
    }
    expect(passed).toBe(100);
  });

  it('begins anew a period after a burst, as a fixed window does: `limit 1, ttl 1000`, wait 1000', () => {
    const bench = window(1, '1s');
    for (let round = 0; round < 20; round++) {
      expect(bench.take().allowed).toBe(true);
      expect(bench.take().allowed).toBe(false);
      bench.clock.advance(1000);
    }
  });

  it('says exactly when the same request would pass', () => {
    const bench = window(10, '1s');
    bench.take(3);
    bench.clock.advance(250);
    bench.take(7);
    expect(bench.take(3)).toMatchObject({ allowed: false, retryAfterMs: 750 });
    // The second was taken in the sub-window that began at 200.
    expect(bench.take(4)).toMatchObject({ allowed: false, retryAfterMs: 950 });
    bench.clock.advance(949);
    expect(bench.take(4).allowed).toBe(false);
    bench.clock.advance(1);
    expect(bench.take(4).allowed).toBe(true);
  });

  it('forgets everything within a period of the last request', () => {
    const bench = window(10, '1s');
    expect(bench.take(10).resetMs).toBe(1000);
    bench.clock.advance(1000);
    expect(bench.peek()).toMatchObject({ remaining: 10, resetMs: 0 });
    const hourly = window(5, '1h');
    hourly.clock.advance(1_234_567);
    expect(hourly.take().resetMs).toBeLessThanOrEqual(3_600_000);
  });

  it('V-D11: time that steps back frees nothing', () => {
    const bench = window(10, '1s');
    bench.clock.advance(5000);
    bench.take(10);
    bench.clock.jump(-1_000_000);
    expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 2000 });
    bench.clock.jump(1_000_000);
    expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 1000 });
  });

  it('goes on from there when time steps back by more than a second, with all that it has counted', () => {
    const bench = window(10, '1s');
    bench.clock.advance(3_600_000);
    bench.take(4);
    bench.clock.advance(300);
    bench.take(6);
    bench.clock.jump(-3_000_000_000);
    expect(bench.take()).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 700 });
    bench.clock.advance(699);
    expect(bench.take().allowed).toBe(false);
    bench.clock.advance(1);
    expect(bench.peek().remaining).toBe(4);
    bench.clock.advance(300);
    expect(bench.peek().remaining).toBe(10);
  });

  it('gives back the oldest first, and never more than was taken', () => {
    const bench = window(10, '1s');
    bench.take(3);
    bench.clock.advance(500);
    bench.take(4);
    void bench.limiter.refund({ policy: 'p', key: 'k', cost: 5 });
    expect(bench.peek().remaining).toBe(8);
    // Both of what is left were taken at 500.
    bench.clock.advance(999);
    expect(bench.peek().remaining).toBe(8);
    void bench.limiter.refund({ policy: 'p', key: 'k', cost: 9 });
    expect(bench.peek().remaining).toBe(10);
  });

  it('gives back what a decision took out of its own part, and nothing once that is forgotten', () => {
    const bench = window(10, '1s');
    const request = { policy: 'p', key: 'k', cost: 3 };
    bench.clock.advance(50);
    const first = bench.take(3);
    bench.clock.advance(500);
    const second = bench.take(3);
    void bench.limiter.refund(request, second);
    expect(bench.peek().remaining).toBe(7);
    bench.clock.advance(449);
    expect(bench.peek().remaining).toBe(7);
    bench.clock.advance(1);
    expect(bench.peek().remaining).toBe(10);
    bench.take(5);
    void bench.limiter.refund(request, first);
    expect(bench.peek().remaining).toBe(5);
  });

  const cuts = {
    rate: fc.integer({ min: 1, max: 50 }),
    periodMs: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 10, max: 10_000 })),
    subWindows: fc.oneof(fc.integer({ min: 2, max: 20 }), fc.integer({ min: 2, max: 120 })),
    /** In 1024ths of a microsecond, so that sums are exact. */
    phase: fc.integer({ min: 0, max: 2 ** 40 }).map((part) => part / 1024),
  };
  const histories = fc.record({
    ...cuts,
    steps: fc.array(
      fc.record({
        gapMicros: fc
          .oneof(fc.integer({ min: 0, max: 2 ** 31 }), fc.integer({ min: 0, max: 2 ** 18 }))
          .map((part) => part / 1024),
        cost: fc.nat({ max: 9 }),
      }),
      { maxLength: 80 },
    ),
  });

  it('property: a caller that asks at the pace of the rate is never denied', () => {
    fc.assert(
      fc.property(
        fc.record({ ...cuts, cost: fc.integer({ min: 1, max: 9 }) }),
        ({ rate: times, periodMs, subWindows, phase, cost }) => {
          // So many times a period, each of this cost: evenly, also where that is no whole number.
          const bench = window(times * cost, periodMs, subWindows);
          const periodMicros = periodMs * 1000;
          for (let asked = 0; asked < 3 * times; asked++) {
            const within = Math.floor(((asked % times) * periodMicros * 1024) / times) / 1024;
            const at = phase + Math.floor(asked / times) * periodMicros + within;
            bench.clock.jump(at - bench.clock.now());
            expect(bench.take(cost).allowed).toBe(true);
          }
        },
      ),
    );
  });

  it('property: a caller that never asks for more than the limit in a period is never denied', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, subWindows, phase, steps }) => {
        const bench = window(rate, periodMs, subWindows);
        bench.clock.jump(phase);
        const taken: { at: number; cost: number }[] = [];
        for (const { gapMicros, cost } of steps) {
          bench.clock.jump(gapMicros);
          const at = bench.clock.now();
          const inPeriod = taken.filter((one) => one.at > at - periodMs * 1000);
          const left = rate - inPeriod.reduce((sum, one) => sum + one.cost, 0);
          if (left === 0) continue;
          const fits = Math.min(left, cost + 1);
          expect(bench.take(fits).allowed).toBe(true);
          taken.push({ at, cost: fits });
        }
      }),
    );
  });

  it('property: in any span one part shorter than the period at most the limit is taken', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, subWindows, phase, steps }) => {
        const bench = window(rate, periodMs, subWindows);
        bench.clock.jump(phase);
        const partMicros = Math.ceil((periodMs * 1000) / subWindows);
        const spanMicros = periodMs * 1000 - partMicros;
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

  const uses = fc.record({
    rate: fc.integer({ min: 1, max: 10 }),
    subWindows: fc.integer({ min: 2, max: 10 }),
    steps: fc.array(
      fc.record({
        /** In hundredths of the period. */
        gap: fc.oneof(fc.constant(0), fc.nat({ max: 15 })),
        cost: fc.integer({ min: 1, max: 10 }),
        /** Which of those that still count is given back, if there are so many. */
        back: fc.nat({ max: 5 }),
      }),
      { minLength: 20, maxLength: 60 },
    ),
  });

  it.each([
    ['with their decisions', true],
    ['without', false],
  ])('property: the same of what is not given back, %s', (_name, isTold) => {
    fc.assert(
      fc.property(uses, ({ rate, subWindows, steps }) => {
        const bench = window(rate, '1s', subWindows);
        const spanMicros = 1_000_000 - Math.ceil(1_000_000 / subWindows);
        let kept: { at: number; cost: number; decision: Decision }[] = [];
        for (const { gap, cost, back } of steps) {
          bench.clock.advance(gap * 10);
          const fits = Math.min(rate, cost);
          const decision = bench.take(fits);
          const now = bench.clock.now();
          if (decision.allowed) kept.push({ at: now, cost: fits, decision });
          kept = kept.filter(({ at }) => at >= now - spanMicros);
          expect(kept.reduce((sum, one) => sum + one.cost, 0)).toBeLessThanOrEqual(rate);
          const [unused] = kept.splice(back, 1);
          if (unused === undefined) continue;
          const request = { policy: 'p', key: 'k', cost: unused.cost };
          void bench.limiter.refund(request, isTold ? unused.decision : undefined);
        }
      }),
    );
  });

  it('property: waiting retryAfterMs is enough, two milliseconds less is not, a denial changes nothing', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, subWindows, phase, steps }) => {
        const bench = window(rate, periodMs, subWindows);
        bench.clock.jump(phase);
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
