import { SETTINGS } from './manual-loop.js';
import { figuresOf, median, ServerModel, type Load, type Served } from './server-model.js';

const SEEDS = [1, 2, 3, 4, 5];
const SECONDS = 20;

type Figures = ReturnType<typeof figuresOf>;

/** The real line before a model of a Node server, on virtual time. */
describe('in a model of a server, the line', () => {
  const run = (load: Omit<Load, 'seed' | 'seconds'>, seconds = SECONDS): (readonly Served[])[] =>
    SEEDS.map((seed) => {
      const model = new ServerModel({ ...load, seconds, seed });
      return model.run(model.line(SETTINGS));
    });
  const medianOf = (all: readonly Figures[], read: (one: Figures) => number): number =>
    median(all.map(read));

  it.each([
    [1.5, 0.95],
    [2, 0.95],
    [2.4, 0.95],
    [5, 0.93],
    [10, 0.88],
  ])('at %d times the capacity keeps its goodput at %d, steadily, and serves S', (factor, bar) => {
    const all = run({ factorAt: () => factor }).map((requests) => figuresOf(requests, SECONDS));
    expect(medianOf(all, ({ goodput }) => goodput)).toBeGreaterThanOrEqual(bar);
    expect(medianOf(all, ({ unsteadiness }) => unsteadiness)).toBeLessThanOrEqual(0.05);
    expect(medianOf(all, ({ tiers }) => tiers[0]!)).toBeGreaterThanOrEqual(0.99);
    if (factor !== 2.4) return;
    expect(medianOf(all, ({ p99Ms }) => p99Ms)).toBeLessThanOrEqual(100);
    expect(medianOf(all, ({ tiers }) => tiers[1]!)).toBeGreaterThanOrEqual(0.97);
    expect(medianOf(all, ({ tiers }) => tiers[3]!)).toBeLessThanOrEqual(0.1);
  });

  it.each([
    [2, 0.9],
    [5, 0.75],
  ])('answers everybody on new connections at %d times the capacity', (factor, bar) => {
    const all = run({ factorAt: () => factor, isNew: true });
    // Of the last second nobody has waited for long enough to be given up.
    const figures = all.map((requests) => figuresOf(requests, SECONDS, 0, SECONDS - 1));
    expect(medianOf(figures, ({ unanswered }) => unanswered)).toBeLessThanOrEqual(0.01);
    expect(medianOf(figures, ({ goodput }) => goodput)).toBeGreaterThanOrEqual(bar);
    expect(medianOf(figures, ({ tiers }) => tiers[0]!)).toBeGreaterThanOrEqual(0.99);
  });

  it('meets a flash of five times the capacity at once, and forgets it at once', () => {
    const factorAt = (seconds: number): number => (seconds >= 5 && seconds < 10 ? 5 : 0.6);
    const all = run({ factorAt });
    const first = all.map((requests) => figuresOf(requests, SECONDS, 5, 6));
    const after = all.map((requests) => figuresOf(requests, SECONDS, 11));
    expect(medianOf(first, ({ goodput }) => goodput)).toBeGreaterThanOrEqual(0.9);
    expect(medianOf(after, ({ shed }) => shed)).toBeLessThanOrEqual(0.01);
  });

  it('refuses nothing because a downstream is slow', () => {
    const downstreamMicros = (seconds: number): number => (seconds < 5 ? 20_000 : 2_000_000);
    const all = run({ factorAt: () => 0.5, downstreamMicros }, 15);
    expect(all.flat().filter(({ ending }) => ending === 'full' || ending === 'late')).toEqual([]);
  });

  it.each([
    [false, 0.005],
    [true, 0.05],
  ])('refuses next to nothing at 0.7 times the capacity (pauses: %s)', (hasPauses, bar) => {
    const all = run({ factorAt: () => 0.7, hasPauses });
    const figures = all.map((requests) => figuresOf(requests, SECONDS));
    expect(medianOf(figures, ({ shed }) => shed)).toBeLessThanOrEqual(bar);
  });

  it('stands beside a server without it, which serves nobody in time', () => {
    const model = new ServerModel({ factorAt: () => 2.4, seconds: SECONDS, seed: 1 });
    const requests = model.run({ enter: (one) => one.run() });
    expect(figuresOf(requests, SECONDS).goodput).toBeLessThan(0.1);
  });
});
