import { Conditions, type StatesSeen } from '../../lib/observability/alerts/conditions.js';
import { checkAlerts } from '../../lib/observability/alerts/rules.js';
import { noCounts, Series } from '../../lib/observability/series.js';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const { rules } = checkAlerts();

const states = (more: Partial<StatesSeen> = {}): StatesSeen => ({
  ...{ storeIsUp: undefined, overloaded: undefined, standing: undefined, behind: undefined },
  ...{ breakers: [], falls: [], silent: [] },
  ...more,
});

describe('the states that rules ask for', () => {
  it('are there for what is watched, and for nothing else', () => {
    const conditions = new Conditions();
    conditions.read(states(), [], 0, rules);
    expect(conditions.of('storeAway').size).toBe(0);
    const seen = states({
      ...{ storeIsUp: false, overloaded: true, standing: false, behind: 2, silent: ['api-3'] },
      breakers: [
        ['db', 'open'],
        ['stock', 'half-open'],
        ['mail', 'closed'],
      ],
    });
    conditions.read(seen, [], 0, rules);
    expect(Object.fromEntries(conditions.of('storeAway'))).toEqual({ store: true });
    expect(Object.fromEntries(conditions.of('overload'))).toEqual({ total: true });
    expect(Object.fromEntries(conditions.of('line'))).toEqual({ total: false });
    expect(Object.fromEntries(conditions.of('configBehind'))).toEqual({ total: true });
    expect(Object.fromEntries(conditions.of('nodeSilent'))).toEqual({ 'node:api-3': true });
    expect(Object.fromEntries(conditions.of('breakerOpen'))).toEqual({
      ...{ 'resource:db': true, 'resource:stock': true, 'resource:mail': false },
    });
  });

  it('have a relapse at the third fall within an hour, not of falls before they were looked at', () => {
    const conditions = new Conditions();
    const fell = (count: number, minute: number): boolean => {
      conditions.read(states({ falls: [['db', count, 'a']] }), [], minute * MINUTE, rules);
      return conditions.of('relapse').get('resource:db')!;
    };
    expect(fell(7, 0)).toBe(false);
    expect([fell(8, 10), fell(9, 20)]).toEqual([false, false]);
    // The first of these is more than an hour old by then.
    expect(fell(10, 71)).toBe(false);
    expect(fell(11, 72)).toBe(true);
    expect(fell(11, 81)).toBe(false);
    // A viewer that looks from now on has seen none of them.
    conditions.forget();
    expect(fell(14, 82)).toBe(false);
  });

  it('have a relapse where one node falls again and again, not where all fall once', () => {
    const conditions = new Conditions();
    const fell = (a: number, b: number, c: number): boolean => {
      const falls = [['db', a, 'a'] as const, ['db', b, 'b'] as const, ['db', c, 'c'] as const];
      conditions.read(states({ falls: falls.filter(([, count]) => count > 0) }), [], MINUTE, rules);
      return conditions.of('relapse').get('resource:db') ?? false;
    };
    expect([fell(0, 0, 0), fell(1, 1, 1), fell(2, 2, 2)]).toEqual([false, false, false]);
    expect([fell(2, 3, 2), fell(2, 3, 3)]).toEqual([true, true]);
  });

  it.each([3, 4] as const)('have answers of level %i for half a minute after the last', (level) => {
    const conditions = new Conditions();
    const series = new Series('resource', 'page');
    const counts = noCounts();
    const heldAt = (second: number): boolean => {
      series.read((second - 0.5) * SECOND, 1000, { ...counts }, undefined);
      conditions.read(states(), [series], second * SECOND, rules);
      return conditions.of('levelHeld').get('resource:page')!;
    };
    counts.degraded2 += 5;
    expect(heldAt(1)).toBe(false);
    counts[`degraded${level}`] += 1;
    expect(heldAt(2)).toBe(true);
    const later = Array.from({ length: 40 }, (_, n) => heldAt(3 + n));
    expect(later.indexOf(false)).toBeGreaterThanOrEqual(28);
    expect(later.indexOf(false)).toBeLessThanOrEqual(31);
    expect(later.at(-1)).toBe(false);
  });
});
