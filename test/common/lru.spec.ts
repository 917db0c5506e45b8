import fc from 'fast-check';
import { Lru } from '../../lib/common/lru.js';

const keysOf = (cache: Pick<Lru<unknown>, 'keys'>): string[] => [...cache.keys()];

describe('a cache of the values that were used last', () => {
  it('drops the one that was not used for longest', () => {
    const cache = new Lru<number>(2);
    cache.set('a', 1);
    cache.set('b', 2);
    expect(cache.get('a')).toBe(1);
    cache.set('c', 3);
    expect(keysOf(cache)).toEqual(['a', 'c']);
    expect(cache.get('b')).toBeUndefined();
  });

  it('does not count a look as a use', () => {
    const cache = new Lru<number>(2);
    cache.set('a', 1);
    cache.set('b', 2);
    expect(cache.peek('a')).toBe(1);
    cache.set('c', 3);
    expect(keysOf(cache)).toEqual(['b', 'c']);
  });

  it('drops as many as a large value needs, and keeps none that is larger than the whole', () => {
    const cache = new Lru<string>(10, 10, (value) => value.length);
    for (const key of ['a', 'b', 'c']) expect(cache.set(key, 'xxx')).toBe(true);
    expect(cache.set('d', 'xxxxxx')).toBe(true);
    expect([keysOf(cache), cache.size]).toEqual([['c', 'd'], 9]);
    expect(cache.set('c', 'x'.repeat(11))).toBe(false);
    expect([keysOf(cache), cache.size]).toEqual([['d'], 6]);
    cache.clear();
    expect([cache.count, cache.size]).toEqual([0, 0]);
  });

  it('is never over its bounds, and knows its size', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const value = fc.string({ maxLength: 6 });
    const step = fc.tuple(fc.constantFrom('set', 'get', 'delete'), key, value);
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const cache = new Lru<string>(3, 8, (text) => text.length);
        for (const [verb, name, text] of steps) {
          if (verb === 'set') expect(cache.set(name, text)).toBe(cache.peek(name) === text);
          else cache[verb](name);
          const sizes = keysOf(cache).map((one) => cache.peek(one)!.length);
          expect(cache.size).toBe(sizes.reduce((sum, size) => sum + size, 0));
          expect(cache.count <= 3 && cache.size <= 8).toBe(true);
        }
      }),
    );
  });
});
