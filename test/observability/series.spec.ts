import fc from 'fast-check';
import { LogLinear } from '../../lib/common/histogram.js';
import { noCounts, Series, type Counts } from '../../lib/observability/series.js';
import { OTHER, Reading, SeriesTable } from '../../lib/observability/series-table.js';

const SECOND = 1_000_000;
const counts = (given: Partial<Counts>): Counts => ({ ...noCounts(), ...given });

describe('Series', () => {
  it('keeps the differences of what was counted, and loses none of them', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { minLength: 1, maxLength: 100 }), (more) => {
        const series = new Series('total', undefined, { hours: true });
        let [count, second] = [0, 0];
        for (const one of more) {
          count += one;
          series.read(second++ * SECOND, 1000, counts({ count, used: count * 2 }));
        }
        const end = second * SECOND;
        const all = { slots: more.length, count, used: count * 2, spanMs: more.length * 1000 };
        expect(series.seconds.sum(end, 120)).toMatchObject(all);
        expect(series.minutes.sum(end, 180, -1)).toMatchObject({ count, used: count * 2 });
        expect(series.hours!.sum(end, 168, -1)).toMatchObject({ slots: 1, count });
      }),
    );
  });

  it('begins again where counts have gone back', () => {
    const series = new Series('app', 'shop');
    series.read(0, 1000, counts({ count: 100, denied: 10 }));
    series.read(SECOND, 1000, counts({ count: 7, denied: 1 }));
    expect(series.seconds.at(1)).toMatchObject({ count: 7, denied: 1 });
  });

  it('has quantiles of the second in the second, and of all of the minute in the minute', () => {
    const [series, times] = [new Series('store', undefined, { hours: true }), new LogLinear()];
    for (let second = 0; second < 60; second++) {
      for (let call = 0; call < 10; call++) times.record(second === 30 ? 64_000 : 1000);
      series.read(second * SECOND, 1000, counts({ count: times.count }), times);
    }
    expect(series.seconds.at(29)).toMatchObject({ timed: 10, p50: 1024, p99: 1024, max: 1024 });
    expect(series.seconds.at(30)).toMatchObject({ p50: 65_536, max: 65_536 });
    expect(series.minutes.at(0)).toMatchObject({ timed: 600, p50: 1024, p99: 65_536 });
    expect(series.hours!.at(0)).toMatchObject({ timed: 600, p50: 1024, max: 65_536 });
    expect(series.times(60 * SECOND, 1).count).toBe(600);
    expect(series.times(60 * SECOND, 1, 1).count).toBe(0);
  });

  it('keeps the times of fifteen minutes, and their quantiles for as long as the slots', () => {
    const [series, times] = [new Series('store', undefined), new LogLinear()];
    for (let minute = 0; minute < 40; minute++) {
      times.record(1000);
      series.read(minute * 60 * SECOND, 60_000, counts({ count: minute + 1 }), times);
    }
    expect(series.times(40 * 60 * SECOND, 60).count).toBe(15);
    expect(series.minutes.at(0)!.p99).toBe(1024);
    expect(series.bytes).toBeLessThan(40_000);
  });

  it('knows the busiest minute of an hour and the busiest second of a minute', () => {
    const series = new Series('total', undefined, { hours: true });
    let count = 0;
    for (let second = 0; second < 180; second++) {
      count += second === 70 ? 600 : 5;
      series.read(second * SECOND, 1000, counts({ count }));
    }
    expect(series.minutes.at(1)!.peak).toBe(600);
    expect(series.hours!.at(0)!.peak).toBeCloseTo((600 + 59 * 5) / 60);
  });

  it('takes a minute of which a part is not known for what the rest of it tells', () => {
    const peakWithout = (from: number, to: number): number => {
      const series = new Series('total', undefined, { hours: true });
      for (let second = 0, count = 0; second < 60; second++) {
        if (second >= from && second < to) continue;
        series.read(second * SECOND, 1000, counts({ count: (count += 10) }));
      }
      return series.hours!.at(0)!.peak;
    };
    expect(peakWithout(60, 60)).toBe(10);
    expect(peakWithout(10, 30)).toBeGreaterThan(9.7);
    expect(peakWithout(10, 30)).toBeLessThanOrEqual(10);
    // Less than half of it says little.
    expect(peakWithout(0, 50)).toBeCloseTo(10 / 3);
  });

  it('makes no peak of a few milliseconds', () => {
    const series = new Series('total', undefined);
    series.read(0, 3, counts({ count: 1 }));
    expect(series.seconds.at(0)!.peak).toBe(1);
  });
});

describe('SeriesTable', () => {
  function read(table: SeriesTable, second: number, policies: Record<string, number>): void {
    const reading = new Reading();
    for (const [name, count] of Object.entries(policies)) reading.of('policy', name).count = count;
    table.read(second * SECOND, 1000, reading);
  }

  it('names the busiest first, and the rest is one series', () => {
    const table = new SeriesTable(2);
    read(table, 0, { a: 1, b: 9, c: 5, idle: 0 });
    expect(table.find('policy', 'a')).toBeUndefined();
    expect(table.find('policy', 'b')!.seconds.at(0)!.count).toBe(9);
    expect(table.find('policy', OTHER)!.seconds.at(0)!.count).toBe(1);
    expect(table.dropped).toBe(1);
  });

  it('lets a name keep its place, and one without stay without', () => {
    const table = new SeriesTable(1);
    read(table, 0, { a: 1 });
    read(table, 1, { a: 1, b: 1000 });
    expect(table.isNamed('policy', 'a')).toBe(true);
    expect(table.find('policy', OTHER)!.seconds.at(1)!.count).toBe(1000);
  });

  it('never makes a counter go back, whichever names come', () => {
    const steps = fc.array(fc.array(fc.nat(20), { minLength: 6, maxLength: 6 }), { maxLength: 20 });
    fc.assert(
      fc.property(steps, (adds) => {
        const [table, reading] = [new SeriesTable(3), new Reading()];
        let [all, second] = [0, 0];
        for (const more of adds) {
          more.forEach((one, index) => (reading.of('policy', `p${index}`).count += one));
          all += more.reduce((sum, one) => sum + one, 0);
          table.read(second++ * SECOND, 1000, reading);
        }
        const kept = table.all().map((series) => series.seconds.sum(second * SECOND, 120).count);
        expect(kept.reduce((sum, one) => sum + one, 0)).toBe(all);
      }),
    );
  });

  it('takes less than 4 MB for as many names as fit, with a week of figures', () => {
    const [table, reading, times] = [new SeriesTable(100), new Reading(), new LogLinear()];
    times.record(100);
    const decided = { count: 1, denied: 1 };
    const degraded = { degraded1: 1, degraded2: 1, degraded3: 1, degraded4: 1 };
    for (let index = 0; index < 400; index++) {
      const called = { ...decided, ...degraded, errors: 1, times };
      Object.assign(reading.of('resource', `r${index}`), called);
      Object.assign(reading.of('app', `a${index}`), { ...decided, used: 1 });
      Object.assign(reading.of('policy', `p${index}`), decided);
    }
    Object.assign(reading.total, { ...decided, ...degraded, used: 1, errors: 1, times });
    for (let minute = 0; minute < 16; minute++) {
      times.record(100);
      table.read(minute * 60 * SECOND, 1000, reading);
    }
    const bytes = table.all().reduce((sum, series) => sum + series.bytes, 0);
    expect(bytes).toBeLessThan(4_000_000);
    expect(table.dropped).toBeGreaterThan(1000);
  });
});
