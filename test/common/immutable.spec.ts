import { deepFreeze, isImmutable, remembered } from '../../lib/common/immutable.js';

describe('deepFreeze', () => {
  it('reaches what is inside, also of what was frozen without it', () => {
    const frozen = deepFreeze(Object.freeze({ a: [{ b: 1 }] }));
    expect(() => (frozen.a[0]!.b = 2)).toThrow(TypeError);
    expect(() => frozen.a.push({ b: 1 })).toThrow(TypeError);
    expect([frozen, frozen.a, frozen.a[0]].every(isImmutable)).toBe(true);
  });

  it('comes to an end where things hold each other', () => {
    const one: { other?: object } = {};
    one.other = { one };
    expect(isImmutable(deepFreeze(one).other)).toBe(true);
  });
});

describe('remembered', () => {
  const counting = () => {
    let calls = 0;
    const make = remembered((value: { n: number }, name: string) => [name, value.n, ++calls]);
    return { make, calls: () => calls };
  };

  it('does its work once for what cannot change', () => {
    const { make, calls } = counting();
    const value = deepFreeze({ n: 1 });
    expect(make(value, 'a')).toBe(make(value, 'a'));
    expect(calls()).toBe(1);
    expect(make(deepFreeze({ n: 1 }), 'a')).toEqual(['a', 1, 2]);
  });

  it('does it again under another name', () => {
    const { make, calls } = counting();
    const value = deepFreeze({ n: 1 });
    expect([make(value, 'a')[0], make(value, 'b')[0], make(value, 'a')[0]]).toEqual([
      'a',
      'b',
      'a',
    ]);
    expect(calls()).toBe(3);
  });

  it('trusts nothing that may change, and nothing that is only frozen', () => {
    const { make } = counting();
    const value = { n: 1 };
    expect(make(value, 'a')[1]).toBe(1);
    value.n = 2;
    expect(make(Object.freeze(value), 'a')[1]).toBe(2);
    expect(isImmutable(value)).toBe(false);
  });
});
