import fc from 'fast-check';
import { NeededDepth, SpanSum } from '../../../lib/cli/simulator/measure/need.js';

interface Admission {
  readonly begun: number;
  readonly second: number;
  readonly tokens: number;
}

const admissions = fc
  .array(
    fc.record({
      gap: fc.integer({ min: 0, max: 50 }),
      waited: fc.integer({ min: 0, max: 40 }),
      tokens: fc.integer({ min: 1, max: 5 }),
    }),
    { maxLength: 60 },
  )
  .map((steps): Admission[] => {
    let second = 1;
    return steps.map(({ gap, waited, tokens }) => {
      second += gap / 100;
      return { begun: second - waited / 100, second, tokens };
    });
  });

describe('what a bucket must hold at least', () => {
  it('is the most of any span, counting what began and ended in it', () => {
    fc.assert(
      fc.property(admissions, fc.integer({ min: 1, max: 100 }), (all, rate) => {
        const need = new NeededDepth(rate);
        let most = 0;
        for (const { tokens, begun, second } of all) {
          most = Math.max(most, need.add(tokens, begun, second));
        }
        expect(most).toBeCloseTo(byHand(all, rate), 6);
      }),
    );
  });

  it('is less by what came back within the span', () => {
    const need = new NeededDepth(0);
    expect(need.add(3, 1, 1)).toBe(3);
    need.giveBack(2, 2);
    expect(need.add(2, 3, 3)).toBe(3);
    // Asked for before the tokens came back, and admitted after: 3 - 2 + 2 + 2.
    expect(need.add(2, 1.5, 4)).toBe(5);
  });

  it('follows a rate that changes', () => {
    const need = new NeededDepth(1);
    expect(need.add(10, 0, 0)).toBe(10);
    need.change(3, 2);
    expect(need.add(1, 3, 3)).toBe(6);
  });

  it('knows the rate of the time in which a span began', () => {
    const need = new NeededDepth(10);
    need.change(0, 1);
    expect(need.add(1, 0.5, 2)).toBe(-4);
  });

  it('is less by what was added, but only of spans that have begun before', () => {
    const need = new NeededDepth(0);
    expect(need.add(3, 0, 0)).toBe(3);
    need.allow(2, 1);
    expect(need.add(1, 2, 2)).toBe(2);
    expect(need.add(3, 2, 3)).toBe(5);
  });
});

describe('tokens in a span of a window', () => {
  it('are those that were asked for and admitted within it', () => {
    const sum = new SpanSum(1);
    expect(sum.add(2, 0, 0.1)).toBe(2);
    expect(sum.add(3, 0.5, 0.6)).toBe(5);
    expect(sum.add(1, 1.2, 1.2)).toBe(4);
  });
});

function byHand(all: readonly Admission[], rate: number): number {
  let most = 0;
  for (const { begun: from } of all) {
    for (const { second: to } of all) {
      if (to < from) continue;
      const inside = all.filter(({ begun, second }) => begun >= from && second <= to);
      const tokens = inside.reduce((sum, one) => sum + one.tokens, 0);
      most = Math.max(most, tokens - rate * (to - from));
    }
  }
  return most;
}
