import fc from 'fast-check';
import { Gradient } from '../../lib/protection/gradient.js';
import { Bench } from './bench.js';

const WINDOW = 500_000;

/** Windows of calls that take so many ms each, with so many of them under way. */
class Windows {
  now = 0;
  readonly gradient: Gradient;

  constructor(ceiling = 100) {
    this.gradient = new Gradient(ceiling);
    // The first call only starts the first window.
    this.gradient.ended(10_000, 1, this.now);
  }

  run(windows: number, ms: number, inFlight = Math.floor(this.gradient.limit)): number {
    for (let i = 0; i < windows; i++) {
      for (let call = 0; call < 20; call++) {
        this.now += WINDOW / 20;
        this.gradient.ended(ms * 1000, inFlight, this.now);
      }
    }
    return this.gradient.limit;
  }
}

describe('a limit by the gradient', () => {
  it('is the ceiling while calls take what they usually take', () => {
    expect(new Windows().run(50, 10)).toBe(100);
  });

  it('concludes nothing from fewer than 20 calls or less than half a second', () => {
    const few = new Gradient(100);
    for (let i = 0; i < 19; i++) few.ended(i === 0 ? 1 : 1e6, 100, i * WINDOW);
    expect(few.limit).toBe(100);
    const quick = new Gradient(100);
    for (let i = 0; i < 1000; i++) quick.ended(i === 0 ? 1 : 1e6, 100, i);
    expect(quick.limit).toBe(100);
  });

  it('falls while calls take much longer than usual, by at most a tenth a window', () => {
    const windows = new Windows();
    windows.run(10, 10);
    const first = windows.run(1, 100);
    expect(first).toBe(90);
    expect(windows.run(4, 100)).toBeLessThan(75);
  });

  it('does not creep up without end when calls take a little longer (Netflix/concurrency-limits#134)', () => {
    const windows = new Windows();
    windows.run(10, 10);
    windows.run(2, 100);
    const before = windows.gradient.limit;
    // 1.6 times the 27 ms that are usual by now: room is added only at a gradient of 1.
    expect(windows.run(1, 44)).toBeLessThan(before);
  });

  it('comes back when calls are quick again and the limit is in use, and not when it is not', () => {
    const windows = new Windows();
    windows.run(10, 10);
    windows.run(8, 200);
    const low = windows.gradient.limit;
    expect(windows.run(10, 10, 1)).toBe(low);
    expect(windows.run(60, 10)).toBe(100);
  });

  it('falls by a tenth for a window with a deadline that was missed', () => {
    const windows = new Windows();
    windows.run(2, 10);
    windows.gradient.missedDeadline();
    windows.gradient.missedDeadline();
    expect(windows.run(1, 10)).toBeCloseTo((100 + 0.2 * 10) * 0.9);
  });

  it('stays between 4 and the ceiling, whatever calls take', () => {
    const window = fc.record({
      ms: fc.integer({ min: 0, max: 60_000 }),
      inFlight: fc.nat({ max: 200 }),
      isLate: fc.boolean(),
    });
    const ceiling = fc.integer({ min: 1, max: 300 });
    fc.assert(
      fc.property(ceiling, fc.array(window, { maxLength: 60 }), (most, stream) => {
        const windows = new Windows(most);
        for (const { ms, inFlight, isLate } of stream) {
          if (isLate) windows.gradient.missedDeadline();
          const limit = windows.run(1, ms, inFlight);
          expect(limit).toBeGreaterThanOrEqual(Math.min(4, most));
          expect(limit).toBeLessThanOrEqual(most);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('a bulkhead with limit: gradient', () => {
  it('lets fewer calls begin while the resource is slow, and says how many', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 10, limit: 'gradient', maxWait: '1h' } });
    const round = async (ms: number): Promise<void> => {
      const calls = Array.from({ length: 10 }, () => bench.call());
      while (calls.some(({ isDone }) => !isDone)) {
        await bench.advance(ms);
        for (const call of calls) if (call.hasBegun && !call.isDone) await call.succeed();
      }
    };
    for (let i = 0; i < 20; i++) await round(100);
    expect(bench.stats.limit).toBe(10);
    for (let i = 0; i < 20; i++) await round(1000);
    const { limit } = bench.stats;
    expect(limit).toBeLessThan(10);
    const calls = Array.from({ length: 10 }, () => bench.call());
    expect(calls.filter(({ hasBegun }) => hasBegun)).toHaveLength(limit!);
    bench.protection.prepare({ db: { bulkhead: { maxInFlight: 10 } } })();
    expect(calls.every(({ hasBegun }) => hasBegun)).toBe(true);
    expect(bench.stats).not.toHaveProperty('limit');
  });
});
