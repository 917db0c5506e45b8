import { diff } from '../../lib/config/document/diff.js';
import { type PastRevision } from '../../lib/config/rate-limit-config.js';
import { changesNothing, changesText, changeText } from '../../lib/dashboard/change-text.js';

const NORMAL = {
  apps: { search: { guaranteed: 100, burst: 200 }, reports: { guaranteed: 50, burst: 150 } },
};
const PROMO = {
  apps: { search: { guaranteed: 140, burst: 280 }, reports: { guaranteed: 20, burst: 60 } },
  profile: 'promo',
  profiles: { promo: {} },
};

const past = (revision: number, kind: string, hash: string, before: object, after: object) =>
  ({ revision, kind, hash, diff: diff(before, after) }) as unknown as PastRevision;

describe('the last change', () => {
  const promo = past(2, 'update', 'b', NORMAL, PROMO);
  const first = past(1, 'code', 'a', {}, NORMAL);

  it('is told from old to new, in the words of the page, and whole', () => {
    expect(changeText(promo, [promo, first])).toBe(
      'reports ceiling 150 → 60, reports promised 50 → 20, search ceiling 200 → 280, search promised 100 → 140, profile normal → promo, profiles added',
    );
    expect(changeText(first, [first])).toBe('the first, from the code');
  });

  it('says how much is left out where it is too much to read', () => {
    const apps = (length: number, name = 'a') =>
      Object.fromEntries(Array.from({ length }, (_, n) => [`${name}${n}`, { guaranteed: 1 }]));
    const told = (length: number, name?: string): string =>
      changesText(diff({ apps: {} }, { apps: apps(length, name) }));
    expect(told(12)).not.toMatch(/more/);
    expect(told(14)).toMatch(/^a0 added, .*, a7 added and 2 more$/);
    const long = told(9, 'long'.repeat(40));
    expect(long).toMatch(/ and 7 more$/);
    expect(long.length).toBeLessThan(500);
    expect(told(1, 'long'.repeat(200))).toMatch(/^(?:long)+0 added$/);
  });

  it('says where a rollback went', () => {
    const back = past(3, 'rollback', 'a', PROMO, NORMAL);
    expect(changeText(back, [back, promo, first])).toMatch(
      /^rollback to revision 1: reports ceiling 60 → 150, .*, profiles removed$/,
    );
    expect(changeText(back, [back, promo])).toMatch(/^rollback: reports/);
  });

  it('says of one that only stages, cancels or drops an update that nothing else is changed', () => {
    const of = (kind: string) => {
      const one = past(4, kind, 'b', PROMO, PROMO);
      return [changeText(one, [one]), changesNothing(one)];
    };
    expect(of('stage')).toEqual(['an update waits for its time', true]);
    expect(of('cancel')).toEqual(['an update that waited is cancelled', true]);
    expect(of('drop')).toEqual(['an update that waited did not fit, and is dropped', true]);
    expect(of('update')).toEqual(['update', true]);
    expect(changesNothing(promo)).toBe(false);
    // Of an old revision only its kind may be known.
    const { diff: _diff, ...kept } = promo;
    expect(changesNothing(kept)).toBe(false);
  });

  it('has a word for what came, went, or is too large to be told', () => {
    const before = { cluster: { capacity: 500 }, policies: { login: { rate: '5/min' } } };
    const after = { cluster: { capacity: 12_000 }, policies: {}, profile: 'promo' };
    expect(changesText(diff(before, after))).toBe(
      'capacity 500 → 12k, profile normal → promo, login removed',
    );
    const list = (key: string[]) => ({ policies: { login: { key, note: 'x'.repeat(40) } } });
    expect(changesText(diff(list(['ip']), list(['user'])))).toBe('login key changed');
    expect(changesText(diff({}, { mode: 'x'.repeat(40) }))).toBe(
      `mode not set → ${'x'.repeat(23)}…`,
    );
  });
});
