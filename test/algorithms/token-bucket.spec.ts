import fc from 'fast-check';
import { errorWith } from '../support/errors.js';
import { Bench } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

describe('token bucket', () => {
  describe('rate 10, burst 5 (V-B1 to V-B12)', () => {
    const bench = new Bench({ rate: 10, burst: 5 });
    const steps: [
      atMs: number,
      cost: number,
      allowed: boolean,
      remaining: number,
      retry: number,
    ][] = [
      [0, 1, true, 4, 0],
      [0, 1, true, 3, 0],
      [0, 1, true, 2, 0],
      [0, 1, true, 1, 0],
      [0, 1, true, 0, 0],
      [0, 1, false, 0, 100],
      [50, 1, false, 0, 50],
      [100, 1, true, 0, 0],
      [100, 1, false, 0, 100],
      [1000, 5, true, 0, 0],
      [1300, 3, true, 0, 0],
    ];
    let nowMs = 0;
    it.each(steps)('at %i ms, cost %i: allowed %s', (atMs, cost, allowed, remaining, retry) => {
      bench.clock.advance(atMs - nowMs);
      nowMs = atMs;
      expect(bench.take(cost)).toMatchObject({ allowed, remaining, retryAfterMs: retry });
    });

    it('refuses a cost above the burst with a typed error, not with a denial', () => {
      bench.clock.advance(3700);
      expect(() => bench.take(6)).toThrow(
        errorWith({ code: 'COST_EXCEEDS_LIMIT', field: 'cost', value: 6 }),
      );
      expect(bench.peek().remaining).toBe(5);
    });
  });

  it('V-C1, V-C2: passes the burst, denies the next, and keeps fractions', () => {
    const bench = new Bench({ rate: 1, burst: 10 });
    expect(bench.takeMany(11)).toBe(10);
    bench.clock.advance(500);
    expect(bench.take().allowed).toBe(false);
    bench.clock.advance(500);
    expect(bench.take().allowed).toBe(true);
  });

  it('V-C3: never holds more than its burst', () => {
    const bench = new Bench({ rate: 1, burst: 10 });
    bench.takeMany(10);
    bench.clock.advance(60_000);
    expect(bench.peek().remaining).toBe(10);
  });

  it('V-C4: loses nothing to polling', () => {
    const bench = new Bench({ rate: 1, burst: 1 });
    bench.take();
    let passed = 0;
    for (let poll = 0; poll < 200; poll++) {
      bench.clock.advance(100);
      if (bench.take().allowed) passed++;
    }
    expect(passed).toBe(20);
  });

  it('V-C5: counts in any period', () => {
    const bench = new Bench({ rate: 60, period: '60s', burst: 1 });
    bench.take();
    expect(bench.take().retryAfterMs).toBe(1000);
    bench.clock.advance(1000);
    expect(bench.take().allowed).toBe(true);
  });

  it('V-D2: 3 left, 5/s, one second later: 8, and 7 after a request', () => {
    const bench = new Bench({ rate: 5, burst: 10 });
    bench.take(7);
    bench.clock.advance(1000);
    expect(bench.take()).toMatchObject({ allowed: true, remaining: 7 });
  });

  it('V-D4: (100, 10): 100 of 101 at once, one more after 100 ms', () => {
    const bench = new Bench({ rate: 10, burst: 100 });
    expect(bench.takeMany(101)).toBe(100);
    bench.clock.advance(100);
    expect(bench.takeMany(2)).toBe(1);
  });

  it('V-D8: 2 tokens, cost 5, 5/s: 600 ms', () => {
    const bench = new Bench({ rate: 5, burst: 10 });
    bench.take(8);
    expect(bench.take(5)).toMatchObject({ allowed: false, remaining: 2, retryAfterMs: 600 });
  });

  it('V-D11, V-E4: time that steps back gains nothing; a bucket waits for up to a second of it', () => {
    const bench = new Bench({ rate: 2, burst: 10 });
    bench.takeMany(10);
    bench.clock.jump(-1_000_000);
    expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 1500 });
    bench.clock.jump(1_000_000);
    expect(bench.takeMany(10)).toBe(0);
    bench.clock.advance(500);
    expect(bench.takeMany(10)).toBe(1);
  });

  it('V-D11: a larger step back is the new base: the level is kept, and the rate flows', () => {
    const bench = new Bench({ rate: 2, burst: 10 });
    bench.takeMany(7);
    bench.clock.jump(-3_600_000_000);
    expect(bench.takeMany(10)).toBe(3);
    expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 500 });
    bench.clock.advance(5000);
    expect(bench.takeMany(20)).toBe(10);
  });

  it('fills again after a step back though all that came meanwhile was denied', () => {
    const bench = new Bench({ rate: 2, burst: 10 });
    bench.takeMany(10);
    bench.clock.jump(-3_600_000_000);
    let passed = 0;
    for (let i = 0; i < 100; i++) {
      if (bench.take().allowed) passed++;
      bench.clock.advance(100);
    }
    // At 500 ms, 1000 ms, … 9500 ms.
    expect(passed).toBe(19);
  });

  it('V-E4: a clock that steps back and then right again gives what flows in that time, a burst at most', () => {
    const bench = new Bench({ rate: 2, burst: 10 });
    bench.takeMany(10);
    bench.clock.jump(-3_000_000);
    expect(bench.takeMany(10)).toBe(0);
    bench.clock.jump(3_000_000);
    expect(bench.takeMany(10)).toBe(6);
    bench.clock.jump(-3_600_000_000);
    expect(bench.takeMany(10)).toBe(0);
    bench.clock.jump(3_600_000_000);
    expect(bench.takeMany(20)).toBe(10);
  });

  it('V-E1, V-E2: the call of the source: 10 of 12, a second later 2 of 3', () => {
    const bench = new Bench({ rate: 2, burst: 10 });
    expect(bench.takeMany(12)).toBe(10);
    bench.clock.advance(1000);
    expect(bench.takeMany(3)).toBe(2);
  });

  it.each([
    [1_000_000, 'V-B25'],
    [20_000, 'V-B26'],
  ])('%i/s saturated for a second of virtual time is exact (%s)', (rate) => {
    const bench = new Bench({ rate, burst: 100 }, 'memory', new ManualClock(0, 0));
    bench.take(100);
    let taken = 0;
    for (let micros = 0; micros < 1_000_000; micros += 50) {
      bench.clock.jump(50);
      while (bench.take().allowed) taken++;
    }
    expect(taken).toBe(rate);
  });

  it('says when all is back', () => {
    const bench = new Bench({ rate: 10, burst: 5 });
    expect(bench.take(5).resetMs).toBe(500);
    bench.clock.advance(200);
    expect(bench.peek().resetMs).toBe(300);
  });

  it('V-C10: a decision carries the instant it was made for, allowed or not', () => {
    const bench = new Bench({ rate: 1 });
    const expected = bench.clock.epochMs(bench.clock.now());
    expect(bench.take()).toMatchObject({ allowed: true, timestampMs: expected });
    expect(bench.take()).toMatchObject({ allowed: false, timestampMs: expected });
  });

  /** Policies whose buckets would take longer to fill are refused when they are read. */
  const CENTURY_MS = 100 * 365 * 86_400_000;

  const histories = fc
    .record({
      rate: fc.oneof(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.double({ min: 0.01, max: 50, noNaN: true }),
      ),
      periodMs: fc.integer({ min: 1, max: 3_600_000 }),
      burst: fc.integer({ min: 1, max: 10_000 }),
      steps: fc.array(
        fc.record({ gapMicros: fc.integer({ min: 0, max: 5_000_000 }), cost: fc.nat({ max: 20 }) }),
        { maxLength: 60 },
      ),
    })
    .filter(({ rate, periodMs, burst }) => (burst / rate) * periodMs <= CENTURY_MS);

  it('property: in any span Δ at most burst + rate × Δ are taken', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, burst, steps }) => {
        const bench = new Bench({ rate, period: periodMs, burst });
        const taken: { at: number; cost: number }[] = [];
        for (const { gapMicros, cost } of steps) {
          bench.clock.jump(gapMicros);
          const fits = Math.min(burst, cost + 1);
          if (bench.take(fits).allowed) taken.push({ at: bench.clock.now(), cost: fits });
        }
        for (let from = 0; from < taken.length; from++) {
          let sum = 0;
          for (let to = from; to < taken.length; to++) {
            sum += taken[to]!.cost;
            const spanMs = (taken[to]!.at - taken[from]!.at) / 1000;
            expect(sum).toBeLessThanOrEqual(burst + (rate * spanMs) / periodMs + 1e-6);
          }
        }
      }),
    );
  });

  it('property: waiting exactly retryAfterMs is enough, and a denial changes nothing', () => {
    fc.assert(
      fc.property(histories, ({ rate, periodMs, burst, steps }) => {
        const bench = new Bench({ rate, period: periodMs, burst });
        for (const { gapMicros, cost } of steps) {
          bench.clock.jump(gapMicros);
          const fits = Math.min(burst, cost + 1);
          const before = bench.peek(fits);
          const decision = bench.take(fits);
          expect(before.allowed).toBe(decision.allowed);
          if (decision.allowed) continue;
          expect(bench.peek(fits)).toEqual(before);
          bench.clock.jump(decision.retryAfterMs * 1000);
          expect(bench.peek(fits).allowed).toBe(true);
        }
      }),
    );
  });
});
