import fc from 'fast-check';
import { changesBetween, withChanges, type Changes } from '../../lib/dashboard/changes.js';

/** As it arrives. */
const sent = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe('changes of a value', () => {
  it('make the later one of the earlier one, which is left as it is', () => {
    const value = fc.jsonValue();
    fc.assert(
      fc.property(value, value, (one, other) => {
        const [before, now] = [sent(one), sent(other)];
        const changes = changesBetween(before, now);
        if (changes === undefined) expect(before).toEqual(now);
        else expect(withChanges(before, sent(changes))).toEqual(now);
        expect(before).toEqual(sent(one));
      }),
    );
  });

  it.each<[string, unknown, unknown, Changes | undefined]>([
    ['nothing', { a: [1, { b: null }] }, { a: [1, { b: null }] }, undefined],
    ['a part', { a: 1, b: { c: 2, d: 3 } }, { a: 1, b: { c: 2, d: 4 } }, { b: { d: [4] } }],
    ['a place of a list', { a: [1, 2, 3] }, { a: [1, 5, 3] }, { a: { 1: [5] } }],
    ['a longer list', { a: [1, 2] }, { a: [1, 2, 3] }, { a: [[1, 2, 3]] }],
    ['another name', { a: { b: 1 } }, { a: { c: 1 } }, { a: [{ c: 1 }] }],
    ['nothing any more', { a: { b: 1 } }, { a: null }, { a: [null] }],
    ['a list in place of an object', { a: {} }, { a: [] }, { a: [[]] }],
  ])('are told by the parts that changed: %s', (_, before, now, expected) => {
    expect(changesBetween(before, now)).toEqual(expected);
  });

  it('share with the earlier one what has not changed', () => {
    const before = { a: [1], b: [2] };
    const now = withChanges(before, { b: { 0: [3] } }) as typeof before;
    expect(now).toEqual({ a: [1], b: [3] });
    expect(now.a).toBe(before.a);
  });
});
