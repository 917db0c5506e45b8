import fc from 'fast-check';
import { noCounts, Series, type Counts } from '../../lib/observability/series.js';
import { noFigures } from '../../lib/observability/rings.js';
import { stateOf, type SeriesState } from '../../lib/observability/state.js';

const SECOND = 1_000_000;

/** A series that has counted so much in each second, as it is seen when the last of them is over. */
function seenAfter(seconds: readonly Partial<Counts>[]): SeriesState {
  const series = new Series('app', 'shop');
  seconds.forEach((more, second) => {
    series.add((second + 0.5) * SECOND, 1000, { ...noCounts(), ...more });
  });
  return stateOf(series, seconds.length * SECOND);
}

const times = (count: number, of: Partial<Counts>): Partial<Counts>[] =>
  Array.from({ length: count }, () => of);

describe('the state of a series', () => {
  it('has figures of ten seconds', () => {
    const seconds = [0, 3, 1, 2, 0, 1, 4, 2, 3, 4].map((count) => ({ count, denied: count >> 1 }));
    expect(seenAfter([...times(30, { count: 900 }), ...seconds])).toMatchObject({
      ...{ rate: 2, denied: 0.8 },
    });
  });

  it('has those of the last three where these tell otherwise: a burst is seen as it is, and so is its end', () => {
    const calm = { count: 90 };
    const burst = { count: 530, denied: 330, used: 200 };
    for (const second of [3, 5, 7, 10]) {
      const { rate, denied, used } = seenAfter([...times(30, calm), ...times(second, burst)]);
      expect([rate, denied, used]).toEqual([530, 330, 200]);
    }
    for (const second of [6, 7, 10]) {
      const after = [...times(30, calm), ...times(20, burst), ...times(second, calm)];
      expect(seenAfter(after)).toMatchObject({ rate: 90, denied: 0 });
    }
    const degraded = [...times(30, calm), ...times(3, { count: 90, degraded2: 60 })];
    expect(seenAfter(degraded).degraded).toEqual([0, 60, 0, 0]);
  });

  it('does not come and go with bursts that repeat', () => {
    const calm = { count: 50 };
    const burst = { count: 500, denied: 400 };
    for (const [long, every] of [
      [1, 3],
      [1, 4],
      [1, 5],
      [2, 5],
      [1, 6],
      [2, 6],
    ] as const) {
      const seconds = times(120, calm).map((one, second) => (second % every < long ? burst : one));
      const truth = { rate: 50 + (450 * long) / every, denied: (400 * long) / every };
      for (let end = 100; end < 120; end++) {
        const { rate, denied } = seenAfter(seconds.slice(0, end));
        for (const part of [rate / truth.rate, denied / truth.denied]) {
          expect(part).toBeGreaterThan(0.55);
          expect(part).toBeLessThan(1.45);
        }
      }
    }
  });

  it('is not moved by chance: what comes evenly is told by ten seconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 400 }), fc.integer(), (perSecond, seed) => {
        // Each second has a few more or less, as callers that come by chance have.
        let random = (Math.abs(seed) % 2_147_483_646) + 1;
        const next = (): number => (random = (random * 48_271) % 2_147_483_647) / 2_147_483_647;
        const noise = (): number => {
          const sum = next() + next() + next() + next() - 2;
          return Math.max(0, Math.round(perSecond + sum * Math.sqrt(3 * perSecond)));
        };
        const seconds = Array.from({ length: 10 }, () => ({ count: noise() }));
        const all = seconds.reduce((sum, { count }) => sum + count, 0);
        expect(seenAfter(seconds).rate).toBeCloseTo(all / 10);
      }),
    );
  });

  it('is of what was looked at, where looks are seconds apart', () => {
    const series = new Series('app', 'shop', { seconds: 'looks' });
    for (let second = 5; second <= 40; second += 5) {
      const count = second <= 20 ? 500 : 5000;
      series.add(second * SECOND, 5000, { ...noCounts(), count });
    }
    expect(stateOf(series, 40 * SECOND).rate).toBe(1000);
    // No look yet at the last seconds: these are no news.
    expect(stateOf(series, 43 * SECOND).rate).toBe(1000);
  });

  it('knows how many were denied in a minute, and for how long many have been', () => {
    const many = { count: 100, denied: 6 };
    const few = { count: 100, denied: 5 };
    expect(seenAfter(times(90, few))).toMatchObject({ deniedInMinute: 300 });
    expect(seenAfter(times(90, few))).not.toHaveProperty('deniedForMs');
    expect(seenAfter([...times(90, few), ...times(25, many)])).toMatchObject({
      ...{ deniedInMinute: 35 * 5 + 25 * 6, deniedForMs: 25_000 },
    });
    // A pause ends it.
    expect(seenAfter([...times(90, many), ...times(10, few), ...times(10, many)])).toMatchObject({
      deniedForMs: 10_000,
    });
    expect(seenAfter([...times(60, few), ...times(600, many)])).toMatchObject({
      deniedForMs: 600_000,
    });
    expect(seenAfter([{ count: 9 }])).not.toHaveProperty('deniedInMinute');
    // Looks at a fleet have parts of them.
    const parts = seenAfter(times(90, { count: 9, denied: 0.597 }));
    expect(parts).toMatchObject({ deniedInMinute: 36 });
  });

  it('goes on with the minutes where it has no seconds, as after a change of the leader', () => {
    const many = { ...noCounts(), count: 100, denied: 50 };
    const series = new Series('app', 'shop', { seconds: 'looks' });
    const now = 100 * 60 + 30;
    // What was restored: ten minutes of many, and before these some of few.
    for (let minute = 80; minute < 100; minute++) {
      const counts = minute < 90 ? { ...many, denied: 1 } : many;
      series.minutes.add((minute + 0.5) * 60 * SECOND, { ...noFigures(), ...counts });
    }
    for (let second = now - 20; second < now; second++) {
      series.add((second + 1) * SECOND, 1000, many);
    }
    expect(stateOf(series, now * SECOND).deniedForMs).toBe(630_000);
    // Without what is restored, it is known since it looks.
    const anew = new Series('app', 'shop', { seconds: 'looks' });
    for (let second = now - 20; second < now; second++) {
      anew.add((second + 1) * SECOND, 1000, many);
    }
    expect(stateOf(anew, now * SECOND).deniedForMs).toBeLessThanOrEqual(30_000);
  });

  it('does not say for how long where that is longer than it can know', () => {
    const many = { count: 100, denied: 6 };
    expect(seenAfter(times(2 * 3600, many)).deniedForMs).toBe(7_200_000);
    expect(seenAfter(times(4 * 3600, many))).not.toHaveProperty('deniedForMs');
  });

  it('lasts through seconds without a request, but not through a minute of them', () => {
    const [one, none] = [{ count: 1, degraded2: 1 }, {}];
    const seldom = (every: number, count: number): Partial<Counts>[] =>
      Array.from({ length: count }, (_, second) => (second % every === 0 ? one : none));
    expect(seenAfter([...times(300, { count: 1 }), ...seldom(8, 80)]).degradedForMs).toBe(80_000);
    expect(seenAfter([...times(300, none), ...seldom(8, 800)]).degradedForMs).toBe(800_000);
    // However the pauses lie in the two minutes of seconds.
    for (let rest = 1; rest < 40; rest++) {
      const long = [...times(300, none), ...seldom(30, 600 + rest)];
      expect(seenAfter(long).degradedForMs).toBeGreaterThanOrEqual(600_000);
    }
    const paused = [...seldom(8, 80), ...times(70, none), ...seldom(8, 16)];
    expect(seenAfter(paused).degradedForMs).toBeLessThan(25_000);
  });

  it('knows for how long answers have been degraded, at any level', () => {
    const each = [{ degraded1: 1 }, { degraded2: 1 }, { degraded3: 1 }, { degraded4: 1 }, {}];
    const seconds = [...times(30, { count: 5 }), ...each, ...each];
    expect(seenAfter(seconds)).toMatchObject({ degradedForMs: 10_000 });
    expect(seenAfter(times(30, { count: 5 }))).not.toHaveProperty('degradedForMs');
  });
});
