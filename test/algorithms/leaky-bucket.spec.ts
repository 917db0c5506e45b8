import fc from 'fast-check';
import { nginxLimit } from 'nestjs-weir';
import { Bench } from '../support/limiters.js';

describe('leaky bucket', () => {
  describe('as a policer', () => {
    const policer = (rate: number, burst: number): Bench =>
      new Bench({ algorithm: 'leaky-bucket', rate, burst });

    it('V-D1: water 8, leak 2/s, a second later one request makes 7', () => {
      const bench = policer(2, 10);
      bench.take(8);
      bench.clock.advance(1000);
      expect(bench.take()).toMatchObject({ allowed: true, remaining: 3, delayMs: 0 });
    });

    it('V-D3: 100 of 101 at once, one more after 100 ms', () => {
      const bench = policer(10, 100);
      expect(bench.takeMany(101)).toBe(100);
      bench.clock.advance(100);
      expect(bench.takeMany(2)).toBe(1);
    });

    it('V-D5: never leaks below empty', () => {
      const bench = policer(2, 10);
      bench.take(8);
      bench.clock.advance(10_000);
      expect(bench.peek().remaining).toBe(10);
    });

    it('V-D6: full to the brim passes, one more does not', () => {
      const bench = policer(2, 10);
      bench.take(9);
      expect(bench.take().allowed).toBe(true);
      expect(bench.take().allowed).toBe(false);
    });

    it('V-D11: time that steps back adds no water and leaks none', () => {
      const bench = policer(1, 10);
      bench.take(10);
      bench.clock.jump(-1_000_000);
      expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 2000 });
      bench.clock.jump(1_000_000);
      expect(bench.takeMany(3)).toBe(0);
    });

    it('V-D11: a larger step back is the new base: the water is kept, and leaks on', () => {
      const bench = policer(1, 10);
      bench.take(10);
      bench.clock.jump(-5_000_000);
      expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 1000 });
      bench.clock.advance(2000);
      expect(bench.takeMany(3)).toBe(2);
    });

    it('V-E6: 5000/s with room for 1000 more, no delay: 1001 of 1002 at once', () => {
      const bench = new Bench(nginxLimit({ rate: '5000r/s', burst: 1000, nodelay: true }));
      expect(bench.takeMany(1002)).toBe(1001);
    });

    it('V-D12: decides exactly like a token bucket of the same figures', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 1000 }),
          fc.integer({ min: 1, max: 100 }),
          fc.array(
            fc.tuple(fc.integer({ min: -500, max: 2_000_000 }), fc.integer({ min: 1, max: 5 })),
            {
              maxLength: 80,
            },
          ),
          (rate, burst, steps) => {
            const leaky = policer(rate, burst);
            const token = new Bench({ rate, burst });
            for (const [gapMicros, cost] of steps) {
              leaky.clock.jump(gapMicros);
              token.clock.jump(gapMicros);
              const fits = Math.min(cost, burst);
              expect(leaky.take(fits)).toEqual(token.take(fits));
            }
          },
        ),
      );
    });
  });

  describe('with the figures of nginx', () => {
    it.each([
      [{ rate: '100r/s', burst: 20 }, 'shaper', '100/s', 21],
      [{ rate: '5000r/s', burst: 1000, nodelay: true }, 'policer', '5000/s', 1001],
      [{ rate: '30r/m' }, 'policer', '30/m', 1],
      [{ rate: '30r/m', burst: 0, nodelay: false }, 'policer', '30/m', 1],
    ])('%j', (limit, mode, rate, burst) => {
      expect(nginxLimit(limit)).toEqual({ algorithm: 'leaky-bucket', mode, rate, burst });
    });

    it('without a burst lets one pass at a time, as nginx does', () => {
      const bench = new Bench(nginxLimit({ rate: '30r/m' }));
      expect(bench.takeMany(3)).toBe(1);
      bench.clock.advance(1999);
      expect(bench.takeMany(1)).toBe(0);
      bench.clock.advance(1);
      expect(bench.takeMany(2)).toBe(1);
    });

    it.each([
      ['rate', { rate: '100/s' }],
      ['rate', { rate: '0r/s' }],
      ['rate', { rate: '10r/h' }],
      ['rate', { rate: 100 }],
      ['burst', { rate: '1r/s', burst: -1 }],
      ['burst', { rate: '1r/s', burst: 0.5 }],
      ['nodelay', { rate: '1r/s', nodelay: 'yes' }],
      ['delay', { rate: '1r/s', burst: 12, delay: 8 }],
    ])('refuses a %s that is none: %j', (field, limit) => {
      const error = expect.objectContaining({ field: `nginxLimit.${field}` }) as Error;
      expect(() => nginxLimit(limit as never)).toThrow(error);
    });
  });

  describe('as a shaper', () => {
    it('V-D7: five at once at 10/s leave 0, 100, 200, 300, 400 ms later', () => {
      const bench = new Bench({ algorithm: 'leaky-bucket', mode: 'shaper', rate: 10, burst: 5 });
      const delays = Array.from({ length: 5 }, () => bench.take().delayMs);
      expect(delays).toEqual([0, 100, 200, 300, 400]);
      expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 100 });
    });

    it('V-E5: 100/s, one at once and 20 delayed by 10 to 200 ms, the 22nd refused', () => {
      const bench = new Bench(nginxLimit({ rate: '100r/s', burst: 20 }));
      const decisions = Array.from({ length: 22 }, () => bench.take());
      expect(decisions.slice(0, 21).map(({ delayMs }) => delayMs)).toEqual(
        Array.from({ length: 21 }, (_, place) => place * 10),
      );
      expect(decisions[21]).toMatchObject({ allowed: false, delayMs: 0, retryAfterMs: 10 });
    });

    it('refuses whom it would keep waiting longer than maxDelay', () => {
      const bench = new Bench({
        algorithm: 'leaky-bucket',
        mode: 'shaper',
        rate: 10,
        burst: 100,
        maxDelay: '250ms',
      });
      expect([bench.take(), bench.take(), bench.take()].map(({ delayMs }) => delayMs)).toEqual([
        0, 100, 200,
      ]);
      expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 50 });
      bench.clock.advance(50);
      expect(bench.take()).toMatchObject({ allowed: true, delayMs: 250 });
    });

    it('property: starts are at least one interval apart', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 1, max: 1000 }),
          fc.integer({ min: 1, max: 50 }),
          fc.array(fc.integer({ min: 0, max: 500_000 }), { maxLength: 80 }),
          (rate, burst, gaps) => {
            const bench = new Bench({ algorithm: 'leaky-bucket', mode: 'shaper', rate, burst });
            const intervalMs = 1000 / rate;
            let lastStartMs = -Infinity;
            for (const gap of gaps) {
              bench.clock.jump(gap);
              const { allowed, delayMs } = bench.take();
              if (!allowed) continue;
              // delayMs is rounded up to whole milliseconds, each start by less than one.
              const startMs = bench.clock.now() / 1000 + delayMs;
              expect(startMs - lastStartMs).toBeGreaterThan(intervalMs - 1);
              lastStartMs = startMs;
            }
          },
        ),
      );
    });
  });
});
