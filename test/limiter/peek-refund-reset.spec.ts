import fc from 'fast-check';
import { createRateLimiter } from 'nestjs-weir';
import { errorWith } from '../support/errors.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const ALGORITHMS = [
  { rate: 5 },
  { algorithm: 'leaky-bucket', rate: 5 },
  { algorithm: 'leaky-bucket', mode: 'shaper', rate: 5 },
  { algorithm: 'sliding-window', rate: 5 },
] as const;
const K = { policy: 'p', key: 'k' };

describe.each(ALGORITHMS)('%p', (policy) => {
  it('peek says what is there and takes nothing', () => {
    const bench = new Bench(policy);
    expect(bench.peek()).toMatchObject({ allowed: true, remaining: 5, resetMs: 0 });
    expect(bench.peek(5)).toMatchObject({ allowed: true, remaining: 5 });
    bench.take(3);
    expect(bench.peek(2)).toMatchObject({ allowed: true, remaining: 2 });
    expect(bench.peek(3)).toMatchObject({ allowed: false, remaining: 2 });
    expect(bench.limiter.stats()).toMatchObject({
      keys: 1,
      policies: { p: { allowed: 1, denied: 0 } },
    });
  });

  it('refund gives back what was taken, at once', () => {
    const bench = new Bench(policy);
    bench.take(5);
    now(bench.limiter.refund({ ...K, cost: 3 }));
    expect(bench.peek().remaining).toBe(3);
  });

  it('refund never fills above the limit', () => {
    const bench = new Bench(policy);
    bench.take(2);
    for (let i = 0; i < 3; i++) now(bench.limiter.refund({ ...K, cost: 5 }));
    expect(bench.peek().remaining).toBe(5);
    expect(bench.takeMany(10)).toBe(5);
  });

  it('refund to a key that took nothing does nothing', () => {
    const bench = new Bench(policy);
    now(bench.limiter.refund({ ...K, key: 'stranger', cost: 5 }));
    expect(bench.limiter.stats().keys).toBe(0);
    expect(now(bench.limiter.peek({ ...K, key: 'stranger' })).remaining).toBe(5);
  });

  it('reset forgets what the key, and only this key, has used', () => {
    const bench = new Bench(policy);
    bench.take(5);
    bench.take(5, { key: 'other' });
    now(bench.limiter.reset(K));
    expect(bench.peek().remaining).toBe(5);
    expect(bench.limiter.stats().keys).toBe(1);
    expect(bench.take(1, { key: 'other' }).allowed).toBe(false);
    now(bench.limiter.reset({ ...K, key: 'stranger' }));
  });

  it('property: what was taken and given back at one instant was never taken', () => {
    const costs = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 20 });
    fc.assert(
      fc.property(costs, fc.integer({ min: 0, max: 2_000_000 }), (some, micros) => {
        const bench = new Bench(policy);
        bench.take(2);
        bench.clock.jump(micros);
        const before = bench.peek();
        for (const cost of some) {
          if (bench.take(cost).allowed) now(bench.limiter.refund({ ...K, cost }));
        }
        expect(bench.peek().remaining).toBe(before.remaining);
      }),
    );
  });
});

describe('refund', () => {
  it('gives back the policy’s cost if it is not told how much', () => {
    const bench = new Bench({ rate: 10, cost: 3 });
    now(bench.limiter.tryAcquire(K));
    now(bench.limiter.refund(K));
    expect(bench.peek().remaining).toBe(10);
  });

  it('of several policies goes to each, and to the tier that was asked', () => {
    const policies = { a: { rate: 5, tiers: { vip: { rate: 9 } } }, b: { rate: 5 } };
    const limiter = createRateLimiter({ policies, clock: new ManualClock() });
    const requests = [
      { policy: 'a', key: 'k', tier: 'vip', cost: 4 },
      { policy: 'b', key: 'k', cost: 2 },
    ];
    now(limiter.tryAcquire(requests));
    now(limiter.refund(requests));
    expect(now(limiter.peek(requests[0]!)).remaining).toBe(9);
    expect(now(limiter.peek(requests[1]!)).remaining).toBe(5);
  });
});

describe('reset', () => {
  it('of one tier leaves the others as they are', () => {
    const bench = new Bench({ rate: 3, tiers: { vip: 5 } });
    bench.take(3);
    bench.take(5, { tier: 'vip' });
    now(bench.limiter.reset({ ...K, tier: 'vip' }));
    expect(bench.take(5, { tier: 'vip' }).allowed).toBe(true);
    expect(bench.take().allowed).toBe(false);
  });

  it('of a key that shares an overflow bucket does nothing: what others used is not its own', () => {
    const bench = new Bench({ rate: 3, period: '1h' }, { type: 'memory', maxKeys: 1 });
    bench.take(3, { key: 'the only key with a bucket' });
    bench.take(3);
    now(bench.limiter.reset(K));
    expect(bench.peek().remaining).toBe(0);
    expect(bench.take().allowed).toBe(false);
    expect(bench.take(1, { key: 'the only key with a bucket' }).allowed).toBe(false);
  });
});

describe('the limiter', () => {
  it('counts what it decided', () => {
    const bench = new Bench({ rate: 3 });
    bench.takeMany(5);
    expect(bench.limiter.stats()).toEqual({
      keys: 1,
      policies: {
        p: {
          allowed: 3,
          denied: 2,
          shadowDenied: 0,
          fallback: 0,
          bySource: {
            local: { allowed: 3, denied: 2, shadowDenied: 0 },
            store: { allowed: 0, denied: 0, shadowDenied: 0 },
            fallback: { allowed: 0, denied: 0, shadowDenied: 0 },
          },
          scarce: 1,
          overflowed: 0,
          leased: 0,
          leaseCalls: 0,
          cold: 0,
          defaulted: 0,
          anonymous: 0,
          passedOver: {},
        },
      },
      waiting: {},
    });
  });

  it('adds the tiers of a policy up in its counts', () => {
    const bench = new Bench({ rate: 3, tiers: { vip: { rate: 5 } } });
    bench.take(1);
    bench.take(1, { tier: 'vip' });
    expect(bench.limiter.stats()).toMatchObject({ keys: 2, policies: { p: { allowed: 2 } } });
  });

  it('counts how often a key had to share because there was no room for it', () => {
    const bench = new Bench({ rate: 3 }, { type: 'memory', maxKeys: 1 });
    bench.take(3);
    for (let i = 0; i < 3; i++) bench.take(1, { key: 'other' });
    expect(bench.limiter.stats()).toMatchObject({ keys: 1, policies: { p: { overflowed: 3 } } });
  });

  it('is ready at once in memory', async () => {
    await expect(new Bench({ rate: 1 }).limiter.ready()).resolves.toBeUndefined();
  });

  it('decides nothing once closed, and leaves no timer', async () => {
    const { limiter, clock } = new Bench({ rate: 5 });
    await limiter.close();
    await limiter.close();
    const closed = errorWith({ code: 'LIMITER_CLOSED' });
    expect(() => limiter.tryAcquire(K)).toThrow(closed);
    expect(() => limiter.tryAcquire([K])).toThrow(closed);
    expect(() => limiter.allow('p', 'k')).toThrow(closed);
    expect(() => limiter.allowN('p', 'k', 1)).toThrow(closed);
    expect(() => limiter.peek(K)).toThrow(closed);
    expect(() => limiter.refund(K)).toThrow(closed);
    expect(() => limiter.refund([K])).toThrow(closed);
    expect(() => limiter.reset(K)).toThrow(closed);
    await expect(limiter.acquire(K)).rejects.toMatchObject({ code: 'LIMITER_CLOSED' });
    expect(clock.pending).toBe(0);
  });

  it('still tells once closed what it counted', async () => {
    const bench = new Bench({ rate: 3 });
    bench.takeMany(5);
    const before = bench.limiter.stats();
    await bench.limiter.close();
    expect(bench.limiter.stats()).toEqual(before);
  });
});
