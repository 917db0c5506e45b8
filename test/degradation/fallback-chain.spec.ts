import { Readable } from 'node:stream';
import { of } from 'rxjs';
import {
  type DegradeLevel,
  type DegradeReason,
  type FallbackFunction,
  type FallbackLevels,
} from '../../lib/degradation/core/contract.js';
import { house, request, type House } from './parts.js';

const FULL = { name: 'lamp', price: 12, image: 'lamp.png', reviews: ['good'] };
const MESSAGE = '商品信息暂时无法加载，请稍后再试';

/** A route with all levels, of which some can be taken away. */
function route(has: { three?: boolean; four?: boolean } = {}): FallbackLevels {
  return {
    ...(has.three !== false && { level3: () => ({ name: 'lamp', reviews: [] }) }),
    ...(has.four !== false && { level4: { value: MESSAGE } }),
  };
}

const answer = (place: House, levels: FallbackLevels, part = {}) =>
  place.core.fallbacks.answer(request(place, { levels, ...part }));

describe('the level that answers', () => {
  const reasons: DegradeReason[] = ['limited', 'failed', 'slow', 'open', 'forced'];
  const offers = [
    { one: true, two: true, three: true, four: true, expected: 1 },
    { one: false, two: true, three: true, four: true, expected: 2 },
    { one: false, two: false, three: true, four: true, expected: 3 },
    { one: false, two: false, three: false, four: true, expected: 4 },
    { one: false, two: false, three: false, four: false, expected: undefined },
    { one: true, two: false, three: false, four: false, expected: 1 },
    { one: false, two: true, three: false, four: false, expected: 2 },
  ];

  it.each(reasons.flatMap((reason) => offers.map((offer) => ({ reason, ...offer }))))(
    '$reason, with 1: $one 2: $two 3: $three 4: $four, is $expected',
    async ({ reason, one, two, three, four, expected }) => {
      const place = house();
      place.core.caches.store({}, 'k', FULL);
      const levels = { ...route({ three, four }), level1: one, level2: two };
      const found = await answer(place, levels, { reason });
      expect(found?.level).toBe(expected);
      const { answers, unanswered } = place.core.stats().fallbacks;
      if (found !== undefined) {
        expect(found.reason).toBe(reason);
        expect(answers[found.level][reason]).toBe(1);
      } else expect(unanswered[reason]).toBe(1);
    },
  );

  it('says how old it is, and marks what comes from the process', async () => {
    const place = house();
    place.core.caches.store({}, 'k', FULL);
    place.clock.advance(20_000);
    expect(await answer(place, route())).toEqual({
      ...{ level: 1, value: FULL, ageMs: 20_000, ttlMs: 10_000, stale: false, reason: 'limited' },
    });
    place.clock.advance(20_000);
    expect(await answer(place, route())).toEqual({
      ...{ level: 2, value: FULL, ageMs: 40_000, ttlMs: 260_000, stale: true, reason: 'limited' },
    });
    expect(await answer(place, route(), { key: undefined })).toMatchObject({
      ...{ level: 3, ageMs: 0, ttlMs: 0, stale: false },
    });
  });

  it('is not 1 or 2 where the caller may not have another’s answer', async () => {
    const place = house();
    place.core.caches.store({}, 'k', FULL);
    expect(await answer(place, route(), { key: undefined })).toMatchObject({ level: 3 });
  });

  it('is not 1 where the store is the cause', async () => {
    const place = house();
    place.core.caches.store({}, 'k', FULL);
    expect(await answer(place, route(), { storeIsAway: true })).toMatchObject({ level: 2 });
  });

  it.each([1, 2, 3, 4] as DegradeLevel[])(
    'is %s where an operator has pinned it',
    async (level) => {
      const place = house();
      place.core.caches.store({}, 'k', FULL);
      expect(await answer(place, route(), { level })).toMatchObject({ level });
    },
  );

  it('is the next one where the pinned level has nothing', async () => {
    expect(await answer(house(), route(), { level: 2 })).toMatchObject({ level: 3 });
  });

  it('4 has the message exactly (V-E31), and each request a copy of its own', async () => {
    const place = house();
    const levels: FallbackLevels = {
      level3: () => Promise.reject(new Error('table gone')),
      level4: { value: MESSAGE },
    };
    expect(await answer(place, levels)).toMatchObject({ level: 4, value: MESSAGE });
    const standby: FallbackLevels = { level4: { value: { items: [] as string[] } } };
    const first = (await answer(place, standby))!.value as { items: string[] };
    first.items.push('mine');
    expect((await answer(place, standby))!.value).toEqual({ items: [] });
  });

  it.each([null, 0, '', false])('4 may be %j, since that was asked for', async (value) => {
    expect(await answer(house(), { level4: { value } })).toMatchObject({ level: 4, value });
  });
});

describe('a fallback that', () => {
  const cases: [string, FallbackFunction, string][] = [
    [
      'throws',
      () => {
        throw new Error('no');
      },
      'threw',
    ],
    ['rejects', () => Promise.reject(new Error('no')), 'threw'],
    ['returns a stream', () => Readable.from(['a']), 'stream'],
    ['returns an Observable', () => of(1), 'stream'],
    ['returns a web stream', () => new Blob(['a']).stream(), 'stream'],
    ['promises a generator', () => Promise.resolve(generate()), 'stream'],
    ['returns nothing', () => undefined, 'empty'],
    ['returns null', () => null, 'empty'],
  ];

  it.each(cases)('%s is passed over', async (_name, simplified, fault) => {
    const place = house();
    const found = await answer(place, { level3: simplified, level4: { value: 'default' } });
    expect(found).toMatchObject({ level: 4, value: 'default' });
    expect(place.core.stats().fallbacks.faults).toMatchObject({ [fault]: 1 });
  });

  it('gives a stream has it closed', async () => {
    const stream = Readable.from(['a']);
    await answer(house(), { level3: () => stream });
    expect(stream.destroyed).toBe(true);
  });

  it('hangs is given up in time for level 4, and its late failure troubles nobody', async () => {
    const place = house();
    let fail = (): void => {};
    const levels: FallbackLevels = {
      level3: () => new Promise((_, reject) => (fail = () => reject(new Error('late')))),
      level4: { make: async ({ remainingMs }) => ({ remainingMs }) },
    };
    let found: unknown;
    const asked = answer(place, levels).then((value) => (found = value));
    await place.clock.advanceAsync(159);
    expect(found).toBeUndefined();
    await place.clock.advanceAsync(1);
    await asked;
    // A fifth of the time was left for it.
    expect(found).toMatchObject({ level: 4, value: { remainingMs: 40 } });
    fail();
    await place.clock.advanceAsync(100);
    expect(place.core.stats().fallbacks.faults).toMatchObject({ hung: 1, threw: 0 });
  });

  it('hangs at level 4 leaves no answer, by the deadline', async () => {
    const place = house();
    const asked = answer(place, { level4: { make: () => new Promise(() => {}) } });
    await place.clock.advanceAsync(200);
    expect(await asked).toBeUndefined();
    expect(place.core.stats().fallbacks.unanswered.limited).toBe(1);
  });

  it('hangs does not let calls pile up: it is bounded, and the others go on at once', async () => {
    const place = house({ maxFallbacks: 5 });
    let begun = 0;
    const levels: FallbackLevels = {
      level3: () => {
        begun++;
        return new Promise(() => {});
      },
      level4: { value: 'default' },
    };
    const asked = Array.from({ length: 100 }, (_, i) => answer(place, levels, { key: `k${i}` }));
    await place.clock.advanceAsync(0);
    expect(begun).toBe(5);
    expect(place.core.stats().fallbacks.faults.busy).toBe(95);
    await place.clock.advanceAsync(200);
    expect((await Promise.all(asked)).map((found) => found?.level)).toEqual(Array(100).fill(4));
    // Their places are kept: what hangs has not ended.
    expect(await answer(place, levels, { key: 'later' })).toMatchObject({ level: 4 });
    expect(begun).toBe(5);
  });

  it('hangs on one route leaves another route’s alone', async () => {
    const place = house({ maxFallbacks: 1 });
    void answer(place, { level3: () => new Promise(() => {}) });
    await place.clock.advanceAsync(0);
    expect(await answer(place, route())).toMatchObject({ level: 3 });
  });
});

describe('one load in flight per key', () => {
  it('is shared by those who ask for the same', async () => {
    const place = house();
    let calls = 0;
    let finish = (): void => {};
    const levels: FallbackLevels = {
      level3: () => {
        calls++;
        return new Promise((resolve) => (finish = () => resolve({ calls })));
      },
    };
    const asked = Array.from({ length: 200 }, () => answer(place, levels));
    await place.clock.advanceAsync(0);
    finish();
    const found = await Promise.all(asked);
    expect(calls).toBe(1);
    expect(found.every((one) => one?.level === 3)).toBe(true);
  });

  it('is not shared without a key, or for another reason', async () => {
    const place = house();
    let calls = 0;
    const levels: FallbackLevels = { level3: async () => ++calls };
    await Promise.all([
      answer(place, levels, { key: undefined }),
      answer(place, levels, { key: undefined }),
      answer(place, levels, { reason: 'failed' }),
      answer(place, levels, { reason: 'limited' }),
    ]);
    expect(calls).toBe(4);
  });

  it('that hangs is not joined for ever', async () => {
    const place = house();
    let calls = 0;
    const levels: FallbackLevels = {
      level3: () => (++calls === 1 ? new Promise(() => {}) : { calls }),
    };
    const first = answer(place, levels);
    await place.clock.advanceAsync(200);
    expect(await first).toBeUndefined();
    expect(await answer(place, levels)).toMatchObject({ level: 3, value: { calls: 2 } });
  });
});

describe('the deadline', () => {
  it('is one for all levels: budgets do not add up', async () => {
    const place = house({ level1Timeout: '1s' }, { shared: hangingCache() });
    const levels: FallbackLevels = {
      level3: () => new Promise(() => {}),
      level4: { make: () => new Promise(() => {}) },
    };
    let isDone = false;
    const asked = answer(place, levels).then(() => (isDone = true));
    await place.clock.advanceAsync(199);
    expect(isDone).toBe(false);
    await place.clock.advanceAsync(1);
    expect(isDone).toBe(true);
    await asked;
  });

  it('that is over leaves what is at hand: the process cache and the default', async () => {
    const place = house();
    place.core.caches.store({}, 'k', FULL);
    const deadline = place.clock.now() - 1;
    expect(await answer(place, route(), { deadline })).toMatchObject({ level: 2 });
    expect(await answer(place, route(), { deadline, key: 'x' })).toMatchObject({ level: 4 });
    const make: FallbackLevels = { level4: { make: () => 'made' } };
    expect(await answer(place, make, { deadline, key: 'x' })).toMatchObject({ value: 'made' });
  });
});

describe('core fields', () => {
  it('reduce level 3 to what the route names (V-E30)', async () => {
    const levels: FallbackLevels = {
      level3: () => FULL,
      coreFields: ['name', 'price', 'image'],
    };
    const found = await answer(house(), levels);
    expect(found?.value).toEqual({ name: 'lamp', price: 12, image: 'lamp.png' });
  });

  it('are fewer in a promotion, and the daily ones again after it', async () => {
    const place = house();
    const levels: FallbackLevels = {
      resource: 'page',
      level3: () => FULL,
      coreFields: ['name', 'price', 'image'],
    };
    const fields = async (): Promise<string[]> =>
      Object.keys((await answer(place, levels))!.value as object);
    place.core.prepare({ coreFields: ['name', 'price'] })();
    expect(await fields()).toEqual(['name', 'price']);
    place.core.prepare({ coreFields: ['name'], resources: { page: { coreFields: ['price'] } } })();
    expect(await fields()).toEqual(['price']);
    place.core.prepare({})();
    expect(await fields()).toEqual(['name', 'price', 'image']);
  });

  it('reduce other levels where the route says so, inner fields and lists too', async () => {
    const place = house();
    const body = [{ id: 1, price: { amount: 3, tax: 1 }, secret: 'x' }, null];
    place.core.caches.store({}, 'k', body);
    const levels: FallbackLevels = { coreFields: ['id', 'price.amount'], coreLevels: [1, 2, 3] };
    expect((await answer(place, levels))?.value).toEqual([{ id: 1, price: { amount: 3 } }, null]);
    expect((await answer(place, levels, { level: 2 }))?.value).toEqual([
      { id: 1, price: { amount: 3 } },
      null,
    ]);
    const all: FallbackLevels = { coreFields: ['price.amount', 'price'], coreLevels: [1] };
    expect((await answer(place, all))?.value).toEqual([{ price: { amount: 3, tax: 1 } }, null]);
  });

  it('reach no further than the answer itself', async () => {
    const place = house();
    const levels: FallbackLevels = {
      level3: () => JSON.parse('{"__proto__":{"a":1},"b":2}') as unknown,
      coreFields: ['__proto__', 'constructor', 'toString', 'b'],
    };
    const { value } = (await answer(place, levels)) as { value: object };
    expect(Object.keys(value)).toEqual(['__proto__', 'b']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});

async function* generate(): AsyncGenerator<number> {
  yield await Promise.resolve(1);
}

function hangingCache() {
  const stats = { hits: 0, misses: 0, unreadable: 0, stored: 0, tooBig: 0, dropped: 0 };
  return {
    reading: 0,
    get: () => new Promise<undefined>(() => {}),
    set: () => true,
    stats: () => ({ ...stats, failedWrites: 0, strayReplies: 0 }),
    close: () => {},
  };
}
