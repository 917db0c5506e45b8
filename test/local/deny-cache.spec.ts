import fc from 'fast-check';
import { DenyCache } from '../../lib/local/deny-cache.js';

const denial = (untilMicros: number, cost = 1) => ({
  untilMicros,
  dueMicros: untilMicros,
  cost,
  level: 0,
});

describe('the memory of denials', () => {
  it('knows nothing at first', () => {
    expect(new DenyCache(10).find('k', 1, 0)).toBeUndefined();
  });

  it('denies until the instant at which the store may allow, and not at it', () => {
    const cache = new DenyCache(10);
    cache.remember('k', denial(1000));
    expect(cache.find('k', 1, 0)).toEqual(denial(1000));
    expect(cache.find('k', 1, 999)).toEqual(denial(1000));
    expect(cache.find('k', 1, 1000)).toBeUndefined();
    expect(cache.size).toBe(0);
  });

  it('denies what costs as much or more, and lets the store decide on less', () => {
    const cache = new DenyCache(10);
    cache.remember('k', denial(1000, 5));
    expect(cache.find('k', 4, 0)).toBeUndefined();
    expect(cache.find('k', 5, 0)).toBeDefined();
    expect(cache.find('k', 6, 0)).toBeDefined();
  });

  it('keeps keys apart', () => {
    const cache = new DenyCache(10);
    cache.remember('a', denial(1000));
    expect(cache.find('b', 1, 0)).toBeUndefined();
  });

  it('believes the latest answer', () => {
    const cache = new DenyCache(10);
    cache.remember('k', denial(1000));
    cache.remember('k', denial(500, 2));
    expect(cache.find('k', 1, 0)).toBeUndefined();
    expect(cache.find('k', 2, 0)).toEqual(denial(500, 2));
    expect(cache.size).toBe(1);
  });

  it('forgets on request', () => {
    const cache = new DenyCache(10);
    cache.remember('k', denial(1000));
    cache.forget('k');
    cache.forget('stranger');
    expect(cache.find('k', 1, 0)).toBeUndefined();
  });

  it('drops the longest remembered when it is full, and the one asked for last is new again', () => {
    const cache = new DenyCache(2);
    cache.remember('a', denial(1000));
    cache.remember('b', denial(1000));
    cache.remember('a', denial(2000));
    cache.remember('c', denial(1000));
    expect(cache.find('b', 1, 0)).toBeUndefined();
    expect(cache.find('a', 1, 0)).toEqual(denial(2000));
    expect(cache.find('c', 1, 0)).toEqual(denial(1000));
  });

  it('sweeps away what is over and nothing else', () => {
    const cache = new DenyCache(10);
    cache.remember('over', denial(1000));
    cache.remember('just over', denial(2000));
    cache.remember('on', denial(2001));
    cache.sweep(2000);
    expect(cache.size).toBe(1);
    expect(cache.find('on', 1, 2000)).toBeDefined();
  });

  it('property: stays within its bound, and never denies what nobody denied', () => {
    const keys = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const costs = fc.integer({ min: 1, max: 3 });
    const steps = fc.oneof(
      fc.record({ do: fc.constant('remember'), key: keys, cost: costs, ahead: fc.nat(50) }),
      fc.record({ do: fc.constantFrom('find', 'forget', 'sweep'), key: keys, cost: costs }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(steps), (maxKeys, history) => {
        const cache = new DenyCache(maxKeys);
        const latest = new Map<string, { untilMicros: number; cost: number }>();
        history.forEach((step, index) => {
          const now = index * 10;
          if ('ahead' in step) {
            latest.set(step.key, denial(now + step.ahead, step.cost));
            cache.remember(step.key, denial(now + step.ahead, step.cost));
          } else if (step.do === 'forget') {
            latest.delete(step.key);
            cache.forget(step.key);
          } else if (step.do === 'sweep') {
            cache.sweep(now);
          }
          expect(cache.size).toBeLessThanOrEqual(maxKeys);
          if (cache.find(step.key, step.cost, now) === undefined) return;
          const { untilMicros, cost } = latest.get(step.key)!;
          expect(untilMicros).toBeGreaterThan(now);
          expect(cost).toBeLessThanOrEqual(step.cost);
        });
      }),
    );
  });
});
