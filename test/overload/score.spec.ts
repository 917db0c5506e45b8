import fc from 'fast-check';
import { factorOf, scoreOf, SmoothedFactor } from '../../lib/overload/score.js';
import { checkOverload } from '../../lib/overload/settings.js';

const LITERAL = checkOverload({ score: { source: 'literal' } }).score;
const LOOP = checkOverload({}).score;
const BASE = 10_000;

const qps = (cpu: number, memory: number, inFlight: number): number => {
  const load = scoreOf({ cpu, loop: 0, memory, inFlight }, LITERAL);
  return Math.floor(BASE * factorOf(load, 0.5) + 1e-9);
};

describe('the score of the source (E-35 … E-41)', () => {
  it.each([
    [0.5, 0.5, 100, 0, 10_000],
    [0.7, 0.8, 500, 0, 10_000],
    [0.85, 0.5, 100, 0.25, 8750],
    [0.9, 0.85, 600, 0.448333, 7758],
    [0.85, 0.9, 750, 0.5, 7500],
    [1, 0.5, 100, 0.5, 7500],
    [0.5, 1, 100, 0.3, 8500],
    [0.5, 0.5, 1000, 0.2, 9000],
    [1, 1, 1000, 1, 5000],
  ])('V-E12: cpu %p, memory %p, %p requests: load %p, %p', (cpu, memory, inFlight, load, limit) => {
    expect(scoreOf({ cpu, loop: 0, memory, inFlight }, LITERAL)).toBeCloseTo(load, 5);
    expect(qps(cpu, memory, inFlight)).toBe(limit);
  });

  it('V-E13: more requests than count in full are no more than that', () => {
    expect(qps(0.5, 0.5, 3000)).toBe(9000);
    expect(qps(1, 1, 3000)).toBe(5000);
  });

  it('V-E14: a figure that is none counts as no load', () => {
    expect(qps(NaN, 0.5, 100)).toBe(10_000);
    expect(qps(NaN, 1, 1000)).toBe(7500);
  });

  it('looks at the loop where that is busier, unless it is literal', () => {
    const busyLoop = { cpu: 0.25, loop: 1, memory: 0.5, inFlight: 0 };
    expect([scoreOf(busyLoop, LOOP), scoreOf(busyLoop, LITERAL)]).toEqual([0.5, 0]);
    expect(scoreOf({ ...busyLoop, cpu: 1, loop: 0 }, LOOP)).toBe(0.5);
    expect(scoreOf({ ...busyLoop, cpu: NaN }, LOOP)).toBe(0);
  });

  const part = fc.double({ min: 0, max: 1, noNaN: true });
  const input = fc.record({ cpu: part, loop: part, memory: part, inFlight: fc.nat({ max: 2000 }) });

  it('is from 0 to 1, and more of any signal is never less load', () => {
    const signal = fc.constantFrom('cpu', 'loop', 'memory', 'inFlight' as const);
    fc.assert(
      fc.property(input, signal, part, (one, name, more) => {
        const raised = { ...one, [name]: one[name] + more * (name === 'inFlight' ? 1000 : 1) };
        const [load, higher] = [scoreOf(one, LOOP), scoreOf(raised, LOOP)];
        expect(load).toBeGreaterThanOrEqual(0);
        expect(higher).toBeLessThanOrEqual(1 + 1e-9);
        expect(higher).toBeGreaterThanOrEqual(load);
        expect(factorOf(higher, 0.5)).toBeGreaterThanOrEqual(0.5);
      }),
    );
  });
});

describe('the factor that limits go by', () => {
  const run = (smoothed: SmoothedFactor, load: number, ticks: number, floor = 0.5): number[] =>
    Array.from({ length: ticks }, () => smoothed.next(load, floor));

  it('falls within a few ticks and rises within ten seconds, in steps of 0.05', () => {
    const smoothed = new SmoothedFactor();
    expect(run(smoothed, 1, 6)).toEqual([0.75, 0.65, 0.55, 0.55, 0.55, 0.5]);
    const rising = run(smoothed, 0, 20);
    expect(rising[0]).toBeCloseTo(0.6);
    expect(rising.at(-1)).toBe(1);
  });

  it('is not moved by a load that trembles', () => {
    const smoothed = new SmoothedFactor();
    const factors = Array.from({ length: 60 }, (_, i) =>
      smoothed.next(0.5 + (i % 2 === 0 ? 0.06 : -0.06), 0.5),
    );
    expect(new Set(factors.slice(10))).toEqual(new Set([0.75]));
  });

  it('stays between floor and 1, and changes direction once at most for a load that is constant', () => {
    const part = fc.double({ min: 0, max: 1, noNaN: true });
    const floor = fc.double({ min: 0.05, max: 1, noNaN: true });
    fc.assert(
      fc.property(part, part, floor, (first, then, least) => {
        const smoothed = new SmoothedFactor();
        run(smoothed, first, 7, least);
        const factors = [smoothed.factor, ...run(smoothed, then, 60, least)];
        const moves = factors.slice(1).map((factor, i) => Math.sign(factor - factors[i]!));
        const directions = new Set(moves.filter((move) => move !== 0));
        expect(directions.size).toBeLessThanOrEqual(1);
        expect(Math.min(...factors)).toBeGreaterThanOrEqual(least);
        expect(Math.max(...factors)).toBeLessThanOrEqual(1);
      }),
    );
  });
});
