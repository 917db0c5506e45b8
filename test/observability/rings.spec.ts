import fc from 'fast-check';
import { noFigures, Ring, type SlotFigures } from '../../lib/observability/rings.js';

const SECOND = 1_000_000;

const figures = (given: Partial<SlotFigures>): SlotFigures => ({ ...noFigures(), ...given });

describe('Ring', () => {
  it('keeps what was added to each of the last slots, whatever came before', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.nat(100)), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(steps, (adds) => {
        const ring = new Ring(1000, 12);
        const model = new Map<number, number>();
        let second = 0;
        for (const [step, count] of adds) {
          second += step;
          ring.add(second * SECOND + 7, figures({ count }));
          model.set(second, (model.get(second) ?? 0) + count);
        }
        const expected = Array.from({ length: 12 }, (_, index) => model.get(second - 11 + index));
        expect(ring.last(second * SECOND).map((slot) => slot?.count)).toEqual(expected);
      }),
    );
  });

  it('has no data in a gap, which is another thing than nothing', () => {
    const ring = new Ring(1000, 10);
    ring.add(1 * SECOND, figures({ count: 0 }));
    ring.add(3 * SECOND, figures({ count: 4 }));
    expect(ring.last(3 * SECOND, 3).map((slot) => slot?.count)).toEqual([0, undefined, 4]);
  });

  it('sums whole slots only, and tells how many had data and how long they were', () => {
    const ring = new Ring(1000, 10);
    for (const second of [2, 3, 5]) {
      ring.add(second * SECOND, figures({ count: 10, denied: 1, spanMs: 1000, p99: second }));
    }
    const now = 5.2 * SECOND;
    expect(ring.sum(now, 3)).toMatchObject({
      slots: 2,
      count: 20,
      denied: 2,
      spanMs: 2000,
      p99: 3,
    });
    expect(ring.sum(now, 3, -1)).toMatchObject({ slots: 2, count: 20, p99: 5 });
    expect(ring.sum(now, 1, 2)).toMatchObject({ slots: 1, count: 10, p99: 2 });
    expect(ring.sum(now, 1)).toMatchObject({ slots: 0, count: 0 });
  });

  it('gives each slot its part of the figures of a longer time', () => {
    const ring = new Ring(1000, 10);
    ring.addSpan(5.5 * SECOND, figures({ spanMs: 4000, count: 400, denied: 40, p99: 7 }));
    expect(ring.last(6 * SECOND, 7).map((slot) => slot?.count)).toEqual([
      ...[undefined, 50, 100, 100, 100, 50, undefined],
    ]);
    expect(ring.at(5)).toMatchObject({ spanMs: 500, denied: 5, p99: 7 });
    // The rest of a second comes with the next look.
    ring.addSpan(6.5 * SECOND, figures({ spanMs: 1000, count: 100 }));
    expect(ring.at(5)).toMatchObject({ spanMs: 1000, count: 100 });
    expect(ring.sum(7 * SECOND, 10)).toMatchObject({ count: 500, spanMs: 5000 });
  });

  it('has nothing of a longer time than it keeps but what it keeps', () => {
    const ring = new Ring(1000, 10);
    ring.addSpan(100 * SECOND, figures({ spanMs: 100_000, count: 100 }));
    expect(ring.sum(100 * SECOND, 10)).toMatchObject({ slots: 10, count: 10, spanMs: 10_000 });
    ring.addSpan(100 * SECOND, figures({ spanMs: 0, count: 3 }));
    expect(ring.at(100)).toMatchObject({ count: 3 });
  });

  it('adds counts up, takes the latest quantile and the longest time', () => {
    const ring = new Ring(1000, 10);
    ring.add(0, figures({ count: 1, p99: 900, max: 900 }));
    ring.add(1, figures({ count: 2, p99: 300, max: 300 }));
    ring.add(2, figures({ count: 4 }));
    expect(ring.at(0)).toMatchObject({ count: 7, p99: 300, max: 900 });
  });

  it('has no quantile of a slot without times', () => {
    const ring = new Ring(1000, 4);
    ring.add(0, figures({ p50: 5 }));
    ring.add(SECOND, figures({ count: 1 }));
    expect(ring.at(1)!.p50).toBeNaN();
  });

  it('takes memory for the figures that there are', () => {
    const ring = new Ring(1000, 100);
    ring.add(0, figures({ count: 1 }));
    expect(ring.bytes).toBe(2 * 100 * 8);
  });
});
