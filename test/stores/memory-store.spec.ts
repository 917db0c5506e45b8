import fc from 'fast-check';
import { createRateLimiter } from 'nestjs-weir';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { MemoryStore } from '../../lib/stores/memory/memory-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { compileLimit } from '../support/limits.js';

const MINUTE = 60_000;

it('looks for buckets that can be forgotten as often as it is told (B-16)', () => {
  const clock = new ManualClock();
  const limiter = createRateLimiter({
    clock,
    store: { type: 'memory', idleTimeout: '1m', sweepInterval: '10m' },
    policies: { p: { rate: '10/s' } },
  });
  void limiter.tryAcquire({ policy: 'p', key: 'k' });
  clock.advance(9 * MINUTE);
  expect(limiter.stats().keys).toBe(1);
  clock.advance(MINUTE);
  expect(limiter.stats().keys).toBe(0);
  void limiter.close();
  expect(() => createRateLimiter({ store: { type: 'memory', sweepInterval: 0 } })).toThrow(
    'store.sweepInterval',
  );
});

/** A memory store with one table, whose clock moves without the sweep unless it is told to. */
class Shop {
  readonly clock = new ManualClock();
  readonly store: MemoryStore;
  readonly table;
  private readonly outcome = new Outcome();

  constructor(maxKeys: number, rate = 10, burst = 5, algorithm = AlgorithmCode.TokenBucket) {
    this.store = new MemoryStore({ maxKeys, idleTimeoutMs: MINUTE }, this.clock);
    this.table = this.store.open(
      compileLimit({
        algorithm,
        rate,
        burst,
        periodMs: 1000,
        maxDelayMs: Infinity,
        subWindows: 10,
      }),
    );
  }

  take(key: string, cost = 1, table = this.table): boolean {
    this.outcome.nowMicros = this.clock.now();
    table.take(key, cost, this.outcome);
    return this.outcome.allowed;
  }

  left(key: string): number {
    const { table, outcome } = this;
    outcome.nowMicros = this.clock.now();
    table.peek(key, 1, outcome);
    const { perToken } = table.limit;
    return Math.floor(outcome.level / perToken) + (outcome.allowed ? 1 : 0);
  }

  sweepAll(): void {
    for (let i = 0; i < 200; i++) this.store.sweep(this.clock.now());
  }
}

describe('an idle bucket', () => {
  const ALL = [
    AlgorithmCode.TokenBucket,
    AlgorithmCode.LeakyPolicer,
    AlgorithmCode.LeakyShaper,
    AlgorithmCode.SlidingWindow,
  ];

  it.each(ALL)('V-B18: is kept at the idle timeout and forgotten 1 ms later (%i)', (algorithm) => {
    const shop = new Shop(10, 10, 5, algorithm);
    shop.take('k');
    shop.clock.jump(MINUTE * 1000);
    shop.sweepAll();
    expect(shop.store.size).toBe(1);
    shop.clock.jump(1000);
    shop.sweepAll();
    expect(shop.store.size).toBe(0);
  });

  it('V-B18: is kept for as long as it is not full, however idle', () => {
    const shop = new Shop(10, 0.01, 5);
    shop.take('k', 5);
    shop.clock.jump(499_999_999);
    shop.sweepAll();
    expect(shop.store.size).toBe(1);
    shop.clock.jump(1);
    shop.sweepAll();
    expect(shop.store.size).toBe(0);
  });

  it('is found by the sweep that runs by itself: of few keys, by the very next', () => {
    const shop = new Shop(10_000);
    for (let i = 0; i < 1000; i++) shop.take(`k${i}`);
    shop.clock.advance(MINUTE);
    expect(shop.store.size).toBe(1000);
    shop.clock.advance(1000);
    expect(shop.store.size).toBe(0);
  });

  it.each([
    [1001, 1000],
    [2500, 1000],
    [60_000, 1000],
    [60_001, 1001],
    [120_000, 2000],
  ])('is found in time: of %i keys a sweep looks at %i', (keys, most) => {
    const shop = new Shop(200_000);
    for (let i = 0; i < keys; i++) shop.take(`k${i}`);
    shop.clock.jump(2 * MINUTE * 1000);
    shop.store.sweep(shop.clock.now());
    expect(keys - shop.store.size).toBe(most);
  });

  it('is found among 120,000 within two minutes after its time', () => {
    const shop = new Shop(200_000);
    for (let i = 0; i < 120_000; i++) shop.take(`k${i}`);
    shop.clock.advance(2 * MINUTE);
    expect(shop.store.size).toBeGreaterThan(0);
    shop.clock.advance(MINUTE);
    expect(shop.store.size).toBe(0);
  });

  it('is found in every table by the same sweep', () => {
    const shop = new Shop(1000);
    const others = [1, 2, 3].map(() => shop.store.open(shop.table.limit));
    for (const table of [shop.table, ...others]) {
      for (let i = 0; i < 100; i++) shop.take(`k${i}`, 1, table);
    }
    shop.clock.jump(2 * MINUTE * 1000);
    shop.store.sweep(shop.clock.now());
    expect(shop.store.size).toBe(0);
  });

  it('that is used again meanwhile is kept', () => {
    const shop = new Shop(1000);
    for (let second = 0; second < 300; second++) {
      shop.take('busy');
      shop.clock.advance(1000);
    }
    expect(shop.store.size).toBe(1);
  });

  it('leaves its place to the next key, which starts anew', () => {
    const shop = new Shop(10);
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 10; i++) expect(shop.take(`${round}:${i}`, 5)).toBe(true);
      expect(shop.table.overflowed).toBe(0);
      shop.clock.jump(MINUTE * 1000 + 1000);
      shop.sweepAll();
      expect(shop.store.size).toBe(0);
    }
  });

  it('is not looked for once the store is closed', () => {
    const shop = new Shop(10);
    shop.store.close();
    expect(shop.clock.pending).toBe(0);
  });
});

describe('a full table', () => {
  it('forgets a bucket that has recovered to make room, however short its rest was', () => {
    const shop = new Shop(2);
    shop.take('a');
    shop.take('b');
    shop.clock.jump(100_000);
    expect(shop.take('c', 5)).toBe(true);
    expect(shop.store.size).toBe(2);
    expect(shop.table.overflowed).toBe(0);
  });

  it('forgets none that has not, and lets the new key share a bucket, and counts that', () => {
    const shop = new Shop(2);
    shop.take('a', 5);
    shop.take('b', 5);
    shop.clock.jump(99_999);
    expect(shop.take('c')).toBe(true);
    expect(shop.store.size).toBe(2);
    expect(shop.table.overflowed).toBe(1);
    expect([shop.left('a'), shop.left('b')]).toEqual([0, 0]);
  });

  it('limits the keys that share', () => {
    const shop = new Shop(1);
    shop.take('a', 5);
    const allowed = Array.from({ length: 8 }, () => shop.take('new')).filter(Boolean);
    expect(allowed).toHaveLength(5);
  });

  it('tells with peek what a key that shares would get', () => {
    const shop = new Shop(1);
    shop.take('a', 5);
    shop.take('new', 4);
    expect(shop.left('new')).toBe(1);
  });

  it('gives back to a key that shares', () => {
    const shop = new Shop(1);
    shop.take('a', 5);
    shop.take('new', 5);
    shop.table.refund('new', 2, shop.clock.now());
    expect([shop.take('new', 2), shop.take('new')]).toEqual([true, false]);
  });

  it('does not reset a bucket that others share: a flood of resets frees no token', () => {
    const shop = new Shop(1);
    shop.take('a', 5);
    shop.take('new', 4);
    for (let i = 0; i < 50_000; i++) shop.table.reset(`flood-${i}`);
    shop.table.reset('new');
    expect(shop.left('new')).toBe(1);
    expect([shop.take('new', 1), shop.take('new')]).toEqual([true, false]);
    expect([shop.store.size, shop.left('a')]).toEqual([1, 0]);
  });

  it('resets a key with a bucket of its own, and has room again', () => {
    const shop = new Shop(1);
    shop.take('a', 5);
    shop.table.reset('a');
    expect(shop.store.size).toBe(0);
    expect(shop.take('b', 5)).toBe(true);
    expect([shop.store.size, shop.table.overflowed]).toEqual([1, 0]);
  });

  it('has 16,384 shared buckets: a flood of keys gets no more than they hold', () => {
    const shop = new Shop(1, 1, 1);
    shop.take('a');
    let allowed = 0;
    for (let i = 0; i < 300_000; i++) if (shop.take(`flood-${i}`)) allowed++;
    expect(allowed).toBe(16_384);
    expect(shop.table.overflowed).toBe(300_000);
  });

  it('lets a key move out of a shared bucket with what it had used', () => {
    const shop = new Shop(1, 1, 5);
    shop.take('a', 2);
    shop.take('mover', 5);
    shop.clock.jump(2_000_000);
    expect(shop.take('mover', 3)).toBe(false);
    expect(shop.table.overflowed).toBe(1);
    expect(shop.left('mover')).toBe(2);
    expect(shop.take('mover', 2)).toBe(true);
  });

  it('counts the keys of all its tables as one', () => {
    const shop = new Shop(2);
    const other = shop.store.open(shop.table.limit);
    shop.take('a', 5);
    shop.take('a', 5, other);
    expect(shop.store.size).toBe(2);
    shop.take('b', 1, other);
    expect(other.overflowed).toBe(1);
  });

  it('makes room in one table for a key of another', () => {
    const shop = new Shop(1);
    const other = shop.store.open(shop.table.limit);
    shop.take('a');
    shop.clock.jump(100_000);
    shop.take('b', 1, other);
    expect([shop.table.size, other.size, other.overflowed]).toEqual([0, 1, 0]);
  });
});

describe('property', () => {
  const keys = fc.integer({ min: 0, max: 7 }).map((i) => `k${i}`);
  const steps = fc.record({
    key: keys,
    cost: fc.integer({ min: 1, max: 5 }),
    gapMicros: fc.oneof(fc.constant(0), fc.nat({ max: 1_000_000 })),
    flood: fc.constantFrom(0, 0, 1, 5),
  });

  it('a flood of new keys gives no key more than burst + rate × Δ', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(steps, { maxLength: 60 }),
        (maxKeys, list) => {
          const shop = new Shop(maxKeys);
          const start = shop.clock.now();
          const taken = new Map<string, number>();
          for (const [index, { key, cost, gapMicros, flood }] of list.entries()) {
            shop.clock.jump(gapMicros);
            for (let i = 0; i < flood; i++) shop.take(`flood-${index}-${i}`);
            shop.store.sweep(shop.clock.now());
            if (shop.take(key, cost)) taken.set(key, (taken.get(key) ?? 0) + cost);
            const most = 5 + ((shop.clock.now() - start) * 10) / 1e6;
            expect(taken.get(key) ?? 0).toBeLessThanOrEqual(most);
            expect(shop.store.size).toBeLessThanOrEqual(maxKeys);
          }
        },
      ),
    );
  });

  it('a flood of new keys frees no token of a key that has used some', () => {
    const uses = fc.array(fc.record({ key: keys, cost: fc.integer({ min: 1, max: 5 }) }));
    fc.assert(
      fc.property(uses, fc.nat({ max: 600_000 }), (list, micros) => {
        const shop = new Shop(8);
        for (const { key, cost } of list) shop.take(key, cost);
        shop.clock.jump(micros);
        const used = ['k0', 'k3', 'k7'];
        const before = used.map((key) => shop.left(key));
        for (let i = 0; i < 50; i++) shop.take(`flood-${i}`, 5);
        used.forEach((key, index) => {
          expect(shop.left(key)).toBeLessThanOrEqual(before[index]!);
        });
      }),
    );
  });
});
