import { dailyPeaks, forecast, useOf } from '../../lib/observability/capacity.js';
import { noCounts, Series } from '../../lib/observability/series.js';

const HOUR_MICROS = 3_600_000_000;

/** A week of hours; each has one busy minute of so many tokens a second, and a little more in another minute. */
function week(peakOf: (hour: number) => number | undefined): Series {
  const series = new Series('total', undefined, { hours: true });
  for (let hour = 0; hour < 168; hour++) {
    const peak = peakOf(hour);
    if (peak === undefined) continue;
    const at = hour * HOUR_MICROS;
    series.add(at + 30e6, 60_000, { ...noCounts(), used: peak * 60, count: peak * 30 });
    const rest = peak * 30;
    series.add(at + 90e6, 3_540_000, { ...noCounts(), used: rest, count: rest / 2 });
  }
  return series;
}
const END = 168 * HOUR_MICROS - 1;

describe('use', () => {
  it('is that of the busiest minute, on the average, and of the busiest hours but a few', () => {
    const hours = week((hour) => 100 + hour).hours!.last(END);
    expect(useOf(hours, 'used')).toEqual({
      peak: 267,
      average: expect.closeTo((183.5 * 90) / 3600, 6) as number,
      p95: 259,
      hours: 168,
      busiest: [167, 166, 165],
    });
    expect(useOf(hours, 'count')!.peak).toBe(133.5);
  });

  it('has a peak that is not below its average while the first minute goes on', () => {
    const series = new Series('total', undefined, { hours: true });
    for (let second = 0; second < 10; second++) {
      series.add(second * 1e6, 1000, { ...noCounts(), count: 50, used: 100 });
    }
    const hours = series.hours!.last(10e6);
    expect(useOf(hours, 'used')).toMatchObject({ peak: 100, average: 100, p95: 100 });
    expect(useOf(hours, 'count')).toMatchObject({ peak: 50, average: 50 });
  });

  it('is not known without data', () => {
    expect(useOf([undefined, undefined], 'used')).toBeUndefined();
  });
});

describe('peaks of days', () => {
  it('lie back from now, and a day with too little data has none', () => {
    const { hours } = week((hour) => (hour >= 24 && hour < 30 ? undefined : 100 + hour));
    expect(dailyPeaks(hours!, END, 'used')).toEqual([123, undefined, 171, 195, 219, 243, 267]);
  });
});

describe('a forecast', () => {
  it('needs five days', () => {
    expect(forecast([1, 2, undefined, 3, undefined, 4], 10)).toEqual({
      ...{ kind: 'unknown', days: 4, needed: 5 },
    });
  });

  it('says when a line reaches the capacity', () => {
    expect(forecast([10, 20, 30, 40, 50], 100)).toEqual({
      ...{ kind: 'growing', perDay: 10, daysLeft: 5, earliest: 5, latest: 5 },
    });
    expect(forecast([10, undefined, 30, 40, 50, 60], 100)).toMatchObject({ daysLeft: 4 });
    expect(forecast([60, 70, 80, 90, 120], 100)).toMatchObject({ daysLeft: 0, earliest: 0 });
  });

  it('says nothing of what does not grow', () => {
    expect(forecast([50, 50, 50, 50, 50], 100)).toEqual({ kind: 'steady' });
    expect(forecast([90, 80, 70, 60, 50], 100)).toEqual({ kind: 'steady' });
  });

  it('is moved little by one promo day', () => {
    const calm = forecast([40, 42, 44, 46, 48, 50, 52], 80);
    const promo = forecast([40, 42, 44, 79, 48, 50, 52], 80);
    expect(calm).toMatchObject({ perDay: 2, daysLeft: 14 });
    // Six of 21 slopes are of that day: neither the median nor the middle half moves.
    expect(promo).toEqual(calm);
  });

  it('has a range by the middle half of the slopes, without an end where some fall', () => {
    expect(forecast([10, 14, 12, 18, 16, 22], 40)).toMatchObject({ kind: 'growing' });
    const wild = forecast([10, 30, 12, 28, 13, 29], 40);
    expect((wild as { latest: number }).latest).toBe(Infinity);
  });
});
