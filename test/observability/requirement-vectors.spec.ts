import { ruleOf, run, type Part } from './alert-vectors.js';

const fires = (rule: string, parts: readonly Part[], more: object = {}): boolean =>
  run(ruleOf(rule), { parts, ...more }).some(([, phase]) => phase === 'firing');

const HOUR = 3600;

describe('the vectors of the requirements', () => {
  it('V-E37: above 1.5 times 1,000 a second, and not at it', () => {
    const from = { seconds: 600, rate: 1000 };
    expect(fires('qpsRise', [from, { seconds: 60, rate: 1500 }])).toBe(false);
    expect(fires('qpsRise', [from, { seconds: 60, rate: 1501 }])).toBe(true);
  });

  it('V-E38: 11 of 1,000 fail, not 10; and never one of one', () => {
    const failing = (errors: number) => [{ seconds: 600, rate: 1000, errors }];
    expect(fires('errorRate', failing(10))).toBe(false);
    expect(fires('errorRate', failing(11))).toBe(true);
    expect(fires('errorRate', [{ seconds: 600, rate: 0.01, errors: 0.01 }])).toBe(false);
  });

  it('V-E39: by the rule of the design, a p99 of 1.5 times the median of the hour', () => {
    const minutes = (...all: number[]) => all.map((ms) => ({ seconds: 300, rate: 10, ms }));
    const hour = { seconds: HOUR, rate: 10, ms: 100 };
    expect(fires('p99Rise', [hour, ...minutes(110, 120, 130)])).toBe(false);
    expect(fires('p99Rise', [hour, ...minutes(110, 130, 180)])).toBe(true);
  });

  it('V-E40: a peak of 8,000 of 10,000', () => {
    const day = (used: number) => [{ seconds: 2 * HOUR, rate: 100, used }];
    const more = { capacity: 10_000, step: 60 };
    expect(fires('peak', day(8000), more)).toBe(true);
    expect(fires('peak', day(7990), more)).toBe(false);
  });

  it.each([
    [1, 0.05],
    [2, 0.01],
    [3, 0.001],
    [4, 0.0001],
  ])('V-E41: answers of level %i above %f of all', (level, part) => {
    const answers = (share: number) => [{ seconds: 600, rate: 1000, [`degraded${level}`]: 1000 * share }]; // oxfmt-ignore
    expect(fires(`degraded.level${level}`, answers(part * 1.02))).toBe(true);
    expect(fires(`degraded.level${level}`, answers(part * 0.98))).toBe(false);
  });
});
