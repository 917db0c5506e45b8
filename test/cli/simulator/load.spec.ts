import { seededRandom } from '../../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualTime } from '../../../lib/cli/simulator/engine/virtual-time.js';
import {
  arrive,
  even,
  movingHotspot,
  pulse,
  shared,
  surge,
  zipf,
  type Placement,
  type Rates,
} from '../../../lib/cli/simulator/load.js';

const DRAWS = 10_000;

/** The part of requests that each slot gets at this second. */
function parts(place: Placement, slots: number, second = 0): number[] {
  const counts = new Array<number>(slots).fill(0);
  for (let i = 0; i < DRAWS; i++) counts[place(second, i / DRAWS)]! += 1 / DRAWS;
  return counts;
}

describe('placement', () => {
  it('even gives every slot the same', () => {
    for (const part of parts(even(4), 4)) expect(part).toBeCloseTo(0.25, 3);
  });

  it('zipf gives the k-th slot in proportion to 1 / k to the power of s', () => {
    const [first, second, third, fourth] = parts(zipf(4, 1), 4);
    const unit = 1 / (1 + 1 / 2 + 1 / 3 + 1 / 4);
    expect(first).toBeCloseTo(unit, 3);
    expect(second).toBeCloseTo(unit / 2, 3);
    expect(third).toBeCloseTo(unit / 3, 3);
    expect(fourth).toBeCloseTo(unit / 4, 3);
    expect(zipf(4)(0, 1 - 1e-12)).toBe(3);
  });

  it('a hotspot has its part, moves on in time and round again', () => {
    const place = movingHotspot(5, 0.5, 0.8);
    for (const [second, hot] of [
      [0, 0],
      [0.6, 1],
      [2.4, 4],
      [2.6, 0],
    ] as const) {
      const found = parts(place, 5, second);
      expect(found[hot]).toBeCloseTo(0.8, 3);
      for (const [slot, part] of found.entries()) if (slot !== hot) expect(part).toBeCloseTo(0.05);
    }
    expect(movingHotspot(1, 0.5, 0.8)(3, 0.9)).toBe(0);
  });
});

describe('rates', () => {
  it('are shared in proportion', () => {
    expect(shared(() => 100, [3, 1])(0)).toEqual([75, 25]);
  });

  it('pulse and surge change when they should', () => {
    expect([1.9, 2, 3.9, 4].map(pulse(10, 2, 4))).toEqual([0, 10, 10, 0]);
    expect([1.9, 2].map(surge(1, 3, 2))).toEqual([1, 3]);
  });
});

describe('arrivals', () => {
  async function arrivals(rates: Rates): Promise<{ at: number; app: number }[]> {
    const time = new VirtualTime();
    const seen: { at: number; app: number }[] = [];
    const load = { rates, slot: even(3) };
    arrive(time, load, 10, seededRandom(1), (_, app) => seen.push({ at: time.seconds(), app }));
    await time.runUntil(11);
    return seen;
  }

  it('come at the rates of their apps, and end in time', async () => {
    const seen = await arrivals(() => [3000, 1000]);
    expect(seen.length / 40_000).toBeCloseTo(1, 1);
    expect(seen.filter(({ app }) => app === 1).length / seen.length).toBeCloseTo(0.25, 1);
    expect(seen.at(-1)!.at).toBeLessThan(10);
  });

  it('vary as random ones do: as much as their mean', async () => {
    const counts = new Array<number>(100).fill(0);
    for (const { at } of await arrivals(() => [1000])) counts[Math.floor(at * 10)]!++;
    const mean = counts.reduce((a, b) => a + b, 0) / 100;
    const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / 100;
    expect(variance / mean).toBeGreaterThan(0.6);
    expect(variance / mean).toBeLessThan(1.6);
  });

  it('begin at once when a silence is over, at low rates as well', async () => {
    const seen = await arrivals((second) => [second < 5 ? 0 : 20]);
    expect(seen[0]!.at).toBeGreaterThanOrEqual(5);
    expect(seen.length).toBeGreaterThan(60);
    expect(seen.length).toBeLessThan(140);
  });
});
