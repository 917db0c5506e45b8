import {
  createRateLimiter,
  type LimitsChange,
  type PolicyFields,
  type PolicyInput,
  type RateLimiter,
  type RateLimiterOptions,
} from 'nestjs-weir';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';
import { statesOf, Waiter } from '../support/waiters.js';

const K = { policy: 'p', key: 'k' };

function install(limiter: RateLimiter, revision: number, policies: LimitsChange['policies']): void {
  limiter.prepare({ revision, policies })();
}

function remaining(limiter: RateLimiter, request: Partial<typeof K> & { tier?: string } = {}) {
  const { remaining: left, limit } = now(limiter.peek({ ...K, ...request }));
  return [left, limit];
}

function limiterOf(options: RateLimiterOptions): { limiter: RateLimiter; clock: ManualClock } {
  const clock = new ManualClock();
  return { limiter: createRateLimiter({ clock, ...options }), clock };
}

describe('a change of limits', () => {
  it('is not there before it is installed, and then it is whole', () => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 }, q: { rate: 10 } } });
    const commit = limiter.prepare({ revision: 4, policies: { p: { rate: 20 }, r: { rate: 5 } } });
    expect(limiter.revision).toBe(0);
    expect(remaining(limiter)).toEqual([10, 10]);
    expect(limiter.policyNames()).toEqual(['p', 'q']);
    commit();
    expect(limiter.revision).toBe(4);
    expect(remaining(limiter)).toEqual([20, 20]);
    expect(limiter.policyNames().sort()).toEqual(['p', 'r']);
    expect(limiter.policy('p')?.base.capacity).toBe(20);
    expect(() => limiter.peek({ policy: 'q', key: 'k' })).toThrow(
      expect.objectContaining({ code: 'UNKNOWN_POLICY' }) as Error,
    );
  });

  it.each<[what: string, change: unknown, code: string]>([
    ['a rate that is none', { revision: 1, policies: { p: { rate: 0 } } }, 'INVALID_ARGUMENT'],
    ['an option that is none', { revision: 1, policies: { p: { rat: 1 } } }, 'UNKNOWN_OPTION'],
    ['a name that is none', { revision: 1, policies: { 'p:q': { rate: 1 } } }, 'INVALID_ARGUMENT'],
    ['no revision', { policies: {} }, 'INVALID_ARGUMENT'],
    ['a revision below 0', { revision: -1, policies: {} }, 'INVALID_ARGUMENT'],
    ['no policies', { revision: 1 }, 'INVALID_ARGUMENT'],
    ['something else', { revision: 1, policies: {}, polices: {} }, 'UNKNOWN_OPTION'],
    ['nothing', undefined, 'INVALID_ARGUMENT'],
  ])('is refused whole with %s', (_what, change, code) => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 } } });
    const broken = change as LimitsChange;
    const good = { other: { rate: 1 }, ...broken?.policies };
    const whole = broken?.policies === undefined ? broken : { ...broken, policies: good };
    expect(() => limiter.prepare(whole)).toThrow(expect.objectContaining({ code }) as Error);
    expect(limiter.revision).toBe(0);
    expect(limiter.policyNames()).toEqual(['p']);
    expect(remaining(limiter)).toEqual([10, 10]);
  });

  it('is ignored if it is not later than the one that is installed', () => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 } } });
    const earlier = limiter.prepare({ revision: 1, policies: { p: { rate: 1 } } });
    const same = limiter.prepare({ revision: 2, policies: { p: { rate: 2 } } });
    install(limiter, 2, { p: { rate: 50 } });
    earlier();
    same();
    expect([limiter.revision, ...remaining(limiter)]).toEqual([2, 50, 50]);
  });

  it('installs its own set, whatever came between its check and its commit', () => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 }, q: { rate: 10 } } });
    const third = limiter.prepare({ revision: 3, policies: { q: { rate: 30 }, s: { rate: 3 } } });
    install(limiter, 2, { p: { rate: 20 }, r: { rate: 2 } });
    limiter.define({ mine: { rate: 7 } });
    third();
    third();
    expect(limiter.policyNames().sort()).toEqual(['mine', 'q', 's']);
    expect(remaining(limiter, { policy: 'q' })).toEqual([30, 30]);
    expect(limiter.revision).toBe(3);
  });

  it('leaves policies alone that it never named and the options did not have', () => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 } } });
    limiter.define({ inline: { rate: 3 }, shop: { rate: 4 } });
    now(limiter.tryAcquire({ policy: 'inline', key: 'k' }));
    install(limiter, 1, { shop: { rate: 8 } });
    expect(limiter.policyNames().sort()).toEqual(['inline', 'shop']);
    expect(remaining(limiter, { policy: 'inline' })).toEqual([2, 3]);
    install(limiter, 2, {});
    expect(limiter.policyNames()).toEqual(['inline']);
  });

  it('takes those away that it says, and can bring them back', () => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 } } });
    limiter.define({ inline: { rate: 3 }, shop: { rate: 4 } });
    const removed = ['shop', 'nobody'];
    limiter.prepare({ revision: 1, policies: { p: { rate: 10 } }, removed })();
    expect(limiter.policyNames().sort()).toEqual(['inline', 'p']);
    limiter.prepare({ revision: 2, policies: { shop: { rate: 5 } }, removed: ['p'] })();
    expect(limiter.policyNames().sort()).toEqual(['inline', 'shop']);
    const wrong = { revision: 3, policies: {}, removed: 'shop' as never };
    expect(() => limiter.prepare(wrong)).toThrow('change.removed');
  });

  it('can neither be prepared nor installed once the limiter is closed', async () => {
    const { limiter } = limiterOf({ policies: { p: { rate: 10 } } });
    const commit = limiter.prepare({ revision: 1, policies: { p: { rate: 20 } } });
    await limiter.close();
    commit();
    expect(limiter.revision).toBe(0);
    expect(() => limiter.prepare({ revision: 2, policies: {} })).toThrow(
      expect.objectContaining({ code: 'LIMITER_CLOSED' }) as Error,
    );
  });
});

describe('a bucket whose limit changes', () => {
  it.each<[name: string, policy: PolicyFields]>([
    ['token bucket', {}],
    ['leaky policer', { algorithm: 'leaky-bucket' }],
  ])('%s: settles under the old rate and stays as full as it was', (_name, policy) => {
    const bench = new Bench({ ...policy, rate: 100 });
    bench.take(60);
    bench.clock.advance(100);
    install(bench.limiter, 1, { p: { ...policy, rate: 200 } });
    expect(remaining(bench.limiter)).toEqual([100, 200]);
    bench.clock.advance(250);
    expect(remaining(bench.limiter)).toEqual([150, 200]);
    install(bench.limiter, 2, { p: { ...policy, rate: 4, period: '1m', burst: 10 } });
    expect(remaining(bench.limiter)).toEqual([7, 10]);
    bench.clock.advance(7500);
    expect(remaining(bench.limiter)).toEqual([8, 10]);
  });

  it('shaper: the queue stays as long in proportion, and waits stay within the new bound', () => {
    const shaper: PolicyFields = { algorithm: 'leaky-bucket', mode: 'shaper' };
    const bench = new Bench({ ...shaper, rate: 10, burst: 10 });
    for (let i = 0; i < 5; i++) bench.take();
    expect(bench.peek().delayMs).toBe(500);
    install(bench.limiter, 1, { p: { ...shaper, rate: 40, burst: 20 } });
    expect(bench.peek().delayMs).toBe(250);
    while (bench.take().allowed);
    install(bench.limiter, 2, { p: { ...shaper, rate: 1, burst: 3, maxDelay: '2s' } });
    const { allowed, retryAfterMs } = bench.take();
    expect([allowed, retryAfterMs]).toEqual([false, 1000]);
    bench.clock.advance(1000);
    expect(bench.take()).toMatchObject({ allowed: true, delayMs: 2000 });
  });

  it('sliding window: the used part stays the same, and leaves when it would have', () => {
    const window: PolicyFields = { algorithm: 'sliding-window', period: '1s' };
    const bench = new Bench({ ...window, rate: 10 });
    bench.take(4);
    bench.clock.advance(500);
    bench.take(2);
    install(bench.limiter, 1, { p: { ...window, rate: 100 } });
    expect(remaining(bench.limiter)).toEqual([40, 100]);
    bench.clock.advance(600);
    expect(remaining(bench.limiter)).toEqual([80, 100]);
    install(bench.limiter, 2, { p: { ...window, rate: 7 } });
    // 1.4 of 7 are used, which is told as 2.
    expect(remaining(bench.limiter)).toEqual([5, 7]);
    bench.clock.advance(500);
    expect(remaining(bench.limiter)).toEqual([7, 7]);
  });

  it('sliding window: cut in another way, the used part counts as just taken', () => {
    const bench = new Bench({ algorithm: 'sliding-window', rate: 10, period: '1s' });
    bench.take(5);
    bench.clock.advance(900);
    const other: PolicyInput = { algorithm: 'sliding-window', rate: 20, period: '2s' };
    install(bench.limiter, 1, { p: { ...other, subWindows: 3 } });
    expect(remaining(bench.limiter)).toEqual([10, 20]);
    // The new period less one of its three parts, and then all of it.
    bench.clock.advance(1333);
    expect(remaining(bench.limiter)).toEqual([10, 20]);
    bench.clock.advance(667);
    expect(remaining(bench.limiter)).toEqual([20, 20]);
  });

  it('gets back what was taken before the change, and never more than it holds', () => {
    const bench = new Bench({ rate: 100, period: '1h' });
    bench.take(90);
    install(bench.limiter, 1, { p: { rate: 20, period: '1h' } });
    expect(remaining(bench.limiter)).toEqual([2, 20]);
    void bench.limiter.refund({ ...K, cost: 5 });
    expect(remaining(bench.limiter)).toEqual([7, 20]);
    void bench.limiter.refund({ ...K, cost: 20 });
    expect(remaining(bench.limiter)).toEqual([20, 20]);
  });

  it('starts anew under another algorithm or scope', () => {
    const bench = new Bench({ rate: 10, period: '1h' });
    bench.take(10);
    install(bench.limiter, 1, { p: { rate: 10, period: '1h', algorithm: 'sliding-window' } });
    expect(remaining(bench.limiter)).toEqual([10, 10]);
    expect(bench.limiter.stats().keys).toBe(0);
  });

  it('also changes where keys share one because the store is full', () => {
    const { limiter } = limiterOf({
      policies: { p: { rate: 10, period: '1h' } },
      store: { type: 'memory', maxKeys: 1 },
    });
    now(limiter.tryAcquire({ ...K, cost: 5 }));
    now(limiter.tryAcquire({ ...K, key: 'shared', cost: 5 }));
    install(limiter, 1, { p: { rate: 100, period: '1h' } });
    expect(remaining(limiter)).toEqual([50, 100]);
    expect(remaining(limiter, { key: 'shared' })).toEqual([50, 100]);
    expect(limiter.stats().policies.p).toMatchObject({ overflowed: 1 });
    const window: PolicyInput = { rate: 10, period: '1h', algorithm: 'sliding-window' };
    install(limiter, 2, { p: window });
    now(limiter.tryAcquire({ ...K, cost: 5 }));
    now(limiter.tryAcquire({ ...K, key: 'shared', cost: 5 }));
    install(limiter, 3, { p: { ...window, rate: 20, subWindows: 3 } });
    expect(remaining(limiter)).toEqual([10, 20]);
    expect(remaining(limiter, { key: 'shared' })).toEqual([10, 20]);
    // Those of the buckets that are gone still count.
    expect(limiter.stats().policies.p).toMatchObject({ overflowed: 2 });
  });

  it.each<[name: string, a: PolicyInput, b: PolicyInput]>([
    ['token bucket', { rate: 100, period: '1h' }, { rate: 7, period: '1h' }],
    ['coarse units', { rate: 1_000_000, burst: 10 }, { rate: 3, period: '1h', burst: 7 }],
    [
      'leaky bucket',
      { rate: 999, period: '1h', algorithm: 'leaky-bucket' },
      { rate: 10, period: '3h', algorithm: 'leaky-bucket' },
    ],
    [
      'sliding window',
      { rate: 100, period: '1h', algorithm: 'sliding-window' },
      { rate: 7, period: '1h', algorithm: 'sliding-window', subWindows: 4 },
    ],
  ])('%s: gains nothing by 1000 changes back and forth', (_name, a, b) => {
    const bench = new Bench(a);
    bench.take(3);
    const [before] = remaining(bench.limiter);
    for (let revision = 1; revision <= 1000; revision += 2) {
      install(bench.limiter, revision, { p: b });
      install(bench.limiter, revision + 1, { p: a });
      expect(remaining(bench.limiter)[0]).toBeLessThanOrEqual(before!);
    }
  });
});

describe('what does not change with the figures', () => {
  it('other options take effect and no bucket is touched', () => {
    const bench = new Bench({ rate: 10, period: '1h' });
    bench.take(9);
    install(bench.limiter, 1, { p: { rate: 10, period: '1h', cost: 2, shadow: true } });
    expect(remaining(bench.limiter)).toEqual([1, 10]);
    expect(now(bench.limiter.tryAcquire(K))).toMatchObject({ allowed: true, remaining: 1 });
    install(bench.limiter, 2, { p: { rate: 10, period: '1h' } });
    expect(bench.take().allowed).toBe(true);
    expect(bench.take().allowed).toBe(false);
    expect(bench.limiter.stats().policies.p).toMatchObject({
      allowed: 2,
      denied: 1,
      shadowDenied: 1,
    });
  });

  it('tiers come, go and change, each by itself, and the counters go on', () => {
    const { limiter } = limiterOf({
      policies: { p: { rate: 10, period: '1h', tiers: { vip: 50, old: 20 } } },
    });
    for (const tier of [undefined, 'vip', 'old']) now(limiter.tryAcquire({ ...K, tier, cost: 5 }));
    install(limiter, 1, { p: { rate: 10, period: '1h', tiers: { vip: 100, new: 7 } } });
    expect(remaining(limiter)).toEqual([5, 10]);
    expect(remaining(limiter, { tier: 'vip' })).toEqual([90, 100]);
    expect(remaining(limiter, { tier: 'new' })).toEqual([7, 7]);
    expect(remaining(limiter, { tier: 'old' })).toEqual([5, 10]);
    expect(limiter.stats().policies.p).toMatchObject({ allowed: 3 });
    expect(limiter.stats().keys).toBe(2);
  });

  it('a policy that is gone gives its room to the others', () => {
    const { limiter } = limiterOf({
      policies: { p: { rate: 10, period: '1h' }, q: { rate: 10, period: '1h' } },
      store: { type: 'memory', maxKeys: 100 },
    });
    for (let i = 0; i < 100; i++) now(limiter.tryAcquire({ policy: 'p', key: `k${i}` }));
    install(limiter, 1, { q: { rate: 10, period: '1h' } });
    expect(limiter.stats().keys).toBe(0);
    for (let i = 0; i < 100; i++) now(limiter.tryAcquire({ policy: 'q', key: `k${i}` }));
    expect(limiter.stats()).toMatchObject({ keys: 100, policies: { q: { overflowed: 0 } } });
  });
});

describe('callers that wait when the limit changes', () => {
  function waiting(policy: PolicyInput, cost = 1) {
    const bench = new Bench(policy);
    while (bench.take().allowed);
    return { bench, waiter: new Waiter(bench, { cost }) };
  }

  it('go at once if the new limit has room for them', async () => {
    const { bench, waiter } = waiting({ rate: 10, period: '1h' });
    bench.clock.advance(180_000);
    expect(await statesOf(waiter)).toEqual(['waiting']);
    install(bench.limiter, 1, { p: { rate: 20, period: '1h' } });
    expect(await statesOf(waiter)).toEqual(['granted']);
  });

  it('go on waiting under the new rate, in their order', async () => {
    const { bench, waiter } = waiting({ rate: 10, period: '1h' });
    const second = new Waiter(bench);
    install(bench.limiter, 1, { p: { rate: 10, period: '1s' } });
    expect(await statesOf(waiter, second)).toEqual(['waiting', 'waiting']);
    await bench.clock.advanceAsync(100);
    expect(await statesOf(waiter, second)).toEqual(['granted', 'waiting']);
    await bench.clock.advanceAsync(100);
    expect(await statesOf(waiter, second)).toEqual(['granted', 'granted']);
  });

  it('go at once if the policy only watches from now on', async () => {
    const { bench, waiter } = waiting({ rate: 10, period: '1h' });
    install(bench.limiter, 1, { p: { rate: 10, period: '1h', shadow: true } });
    expect(await statesOf(waiter)).toEqual(['granted']);
  });

  it('are told at once if their policy is gone, or has become too small for them', async () => {
    const { bench, waiter } = waiting({ rate: 10, period: '1h' });
    install(bench.limiter, 1, {});
    expect(await statesOf(waiter)).toEqual(['rejected']);
    expect(waiter.error).toMatchObject({ code: 'UNKNOWN_POLICY' });
    const large = waiting({ rate: 10, period: '1h' }, 8);
    install(large.bench.limiter, 1, { p: { rate: 5, period: '1h' } });
    expect(await statesOf(large.waiter)).toEqual(['rejected']);
    expect(large.waiter.error).toMatchObject({ code: 'COST_EXCEEDS_LIMIT' });
  });

  it('and leave their tokens in the bucket as it is now if they give up behind a shaper', async () => {
    const shaper: PolicyInput = { algorithm: 'leaky-bucket', mode: 'shaper', rate: 1, burst: 10 };
    const bench = new Bench(shaper);
    const waiters = [1, 2].map(() => new Waiter(bench));
    expect(await statesOf(...waiters)).toEqual(['granted', 'waiting']);
    install(bench.limiter, 1, { p: { ...shaper, burst: 5 } });
    expect(bench.peek().remaining).toBe(4);
    waiters[1]!.abort();
    expect(await statesOf(...waiters)).toEqual(['granted', 'rejected']);
    expect(bench.peek().remaining).toBe(5);
  });
});
