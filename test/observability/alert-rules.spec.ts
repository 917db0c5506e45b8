import fc from 'fast-check';
import { deepFreeze } from '../../lib/common/immutable.js';
import { evaluate, QUIET } from '../../lib/observability/alerts/evaluate.js';
import { checkAlerts } from '../../lib/observability/alerts/rules.js';
import { noCounts, Series } from '../../lib/observability/series.js';
import { ruleOf, run, VECTORS } from './alert-vectors.js';

describe('the vectors of alerts', () => {
  it.each(VECTORS.map((vector) => [vector.rule, vector.name, vector] as const))(
    '%s: %s',
    (_, __, vector) => {
      expect(run(ruleOf(vector.rule), vector)).toEqual(vector.expect);
    },
  );

  it('has some of each rule', () => {
    const without = checkAlerts().rules.filter(({ id }) =>
      VECTORS.every(({ rule }) => rule !== id),
    );
    expect(without).toEqual([]);
  });
});

describe('the rules of a section', () => {
  it('are made once for one that cannot change, and anew for one that can', () => {
    const section: { hold: '2m' | '3m' } = { hold: '2m' };
    const before = checkAlerts(section);
    section.hold = '3m';
    expect([before, checkAlerts(section)].map(({ rules }) => rules[0]!.holdMs)).toEqual([
      120_000, 180_000,
    ]);
    expect(checkAlerts(deepFreeze(section))).toBe(checkAlerts(section));
    expect(checkAlerts()).toBe(checkAlerts());
  });
});

describe('a peak', () => {
  it('has the limit that it is near, and no trend of a single day, also when the limit was raised', () => {
    const series = new Series('app', 'reports', { hours: true });
    const hour = 3_600_000_000;
    for (let minute = 0; minute < 60; minute++) {
      series.add(hour + minute * 60e6, 60_000, { ...noCounts(), used: 48 * 60 });
    }
    const look = (capacity: number, before = QUIET) =>
      evaluate(ruleOf('peak'), { series, capacity }, before, 2 * hour);
    const near = look(60);
    expect(near).toMatchObject({ phase: 'firing', value: 0.8, limit: 60, isTrend: false });
    expect(look(150, near)).toMatchObject({
      ...{ phase: 'firing', value: 0.32, threshold: 0.8, limit: 150, isTrend: false },
    });
  });
});

describe('a rule', () => {
  const part = fc.double({ min: 0, max: 1, noNaN: true });

  it.each(checkAlerts().rules.map((rule) => [rule.id, rule] as const))(
    '%s tells of what never changes at most once',
    (_, rule) => {
      const steady = fc.record({
        rate: fc.double({ min: 0, max: 500, noNaN: true }),
        ms: fc.integer({ min: 1, max: 500 }),
        ...{ denied: part, errors: part, degraded: part, used: part },
        holds: fc.boolean(),
      });
      const isSlow = rule.name === 'p99Rise' || rule.name === 'peak';
      const lasts = isSlow ? { seconds: 9000, step: 60 } : { seconds: 1200 };
      fc.assert(
        fc.property(steady, ({ rate, ms, degraded, holds, ...shares }) => {
          const of = (share: number): number => share * rate;
          const [denied, errors, used] = [shares.denied, shares.errors, shares.used].map(of);
          const level = of(degraded) / 4;
          const levels = { degraded1: level, degraded2: level, degraded3: level, degraded4: level };
          const parts = [
            { ...levels, seconds: lasts.seconds, rate, ms, holds, denied, errors, used },
          ] as never;
          const told = run(rule, { parts, ...lasts, capacity: 400 }).filter(
            ([, phase]) => phase === 'firing' || phase === 'resolved',
          );
          expect(told.length).toBeLessThanOrEqual(1);
        }),
        { numRuns: 8 },
      );
    },
  );
});
