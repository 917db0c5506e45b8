import fc from 'fast-check';
import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import { InvalidArgumentError } from '../../lib/common/errors.js';
import { checkPolicy, type PolicyInput } from '../../lib/limiter/policy-options.js';
import { startRedis, stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';

/** The figures of the source: E-42…E-47. */
const NORMAL = { S: 10_000, A: 5000, B: 1000, C: 100 };
const PROMO = { S: 50_000, A: 20_000, B: 5000, C: 500 };
const MERCHANT: PolicyInput = {
  tiers: NORMAL,
  defaultTier: 'C',
  passThrough: { S: 0.8, A: 0.5, limit: '20000/s' },
};

describe('pass-through', () => {
  let limiter: RateLimiter;
  let clock: ManualClock;

  const start = (policies: Record<string, PolicyInput> = { merchant: MERCHANT }): void => {
    clock = new ManualClock();
    limiter = createRateLimiter({ policies, clock });
  };
  afterEach(() => limiter.close());
  afterAll(stopAll);

  const ask = (tier: string, key = 'm', policy = 'merchant'): Decision =>
    limiter.tryAcquire({ policy, key, tier }) as Decision;
  const passing = (tier: string, count: number): number => {
    let passed = 0;
    for (let i = 0; i < count; i++) if (ask(tier).allowed) passed++;
    return passed;
  };

  it('lets its part of the excess pass, and none of what has no part (V-E16, V-E17, V-E18)', () => {
    start();
    expect(passing('S', 10_001)).toBeGreaterThanOrEqual(10_000);
    expect(passing('S', 1999)).toBe(1600);
    expect(passing('A', 5000)).toBe(5000);
    expect(passing('A', 1000)).toBe(500);
    expect([passing('B', 2000), passing('C', 2000)]).toEqual([1000, 100]);
    const { allowed, denied, passedOver } = limiter.stats().policies['merchant']!;
    expect(passedOver).toEqual({ S: 1600, A: 500 });
    expect([allowed, denied]).toEqual([10_000 + 1600 + 5500 + 1100, 400 + 500 + 1000 + 1900]);
  });

  it('has a cap of its own for all tiers together (V-E19)', () => {
    start();
    expect(passing('S', 100_000)).toBe(30_000);
    expect(passing('A', 10_000)).toBe(5000);
    clock.advance(1000);
    expect(passing('A', 10_000)).toBe(7500);
  });

  it('says that it was passed over, with no token left', () => {
    start({ p: { tiers: { S: 1 }, defaultTier: 'S', passThrough: { S: 1, limit: 5 } } });
    expect(ask('S', 'k', 'p').isPassedOver).toBeUndefined();
    expect(ask('S', 'k', 'p')).toMatchObject({
      ...{ allowed: true, remaining: 0, limit: 1, retryAfterMs: 0, policy: 'p', tier: 'policy' },
      isPassedOver: true,
    });
  });

  it('is between part × n rounded down and up, of any n in a row', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100 }).map((hundredths) => hundredths / 100),
        fc.nat(300),
        fc.integer({ min: 1, max: 300 }),
        (part, before, count) => {
          const alone = createRateLimiter({
            clock: new ManualClock(),
            policies: { p: { rate: 1, passThrough: { default: part, limit: 1e6 } } },
          });
          const pass = (): boolean =>
            (alone.tryAcquire({ policy: 'p', key: 'k' }) as Decision).allowed;
          pass();
          for (let i = 0; i < before; i++) pass();
          let passed = 0;
          for (let i = 0; i < count; i++) if (pass()) passed++;
          void alone.close();
          expect(passed).toBeGreaterThanOrEqual(Math.floor(part * count + 1e-9));
          expect(passed).toBeLessThanOrEqual(Math.ceil(part * count - 1e-9));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('works beside other policies, all or nothing', () => {
    start({
      merchant: { tiers: { S: 1 }, defaultTier: 'S', passThrough: { S: 1, limit: 2 } },
      other: { rate: 3 },
    });
    const both = (): Decision =>
      limiter.tryAcquire([
        { policy: 'merchant', key: 'm' },
        { policy: 'other', key: 'o' },
      ]) as Decision;
    expect(both().allowed).toBe(true);
    const over = both();
    expect(over).toMatchObject({ allowed: true, isPassedOver: true, policy: 'merchant' });
    expect(over.decisions!.map(({ policy, allowed }) => [policy, allowed])).toEqual([
      ['merchant', true],
      ['other', true],
    ]);
    expect(both().allowed).toBe(true);
    // The other has none left, so the excess keeps its token; and then it has none either.
    const denied = both();
    expect([denied.allowed, denied.isPassedOver]).toEqual([false, undefined]);
    expect(limiter.peek({ policy: 'other', key: 'o' })).toMatchObject({ remaining: 0 });
  });

  it('goes back to where it came from', () => {
    start({ p: { rate: 1, passThrough: { default: 1, limit: { rate: '1/h', burst: 1 } } } });
    const request = { policy: 'p', key: 'k' };
    void limiter.tryAcquire(request);
    const over = limiter.tryAcquire(request) as Decision;
    expect(over.isPassedOver).toBe(true);
    void limiter.refund(request, over);
    // The key's own bucket got nothing.
    expect(limiter.peek(request)).toMatchObject({ allowed: false });
    expect(limiter.tryAcquire(request)).toMatchObject({ allowed: true, isPassedOver: true });
    expect(limiter.tryAcquire(request)).toMatchObject({ allowed: false });
  });

  it('is not for callers that wait for tokens', async () => {
    start({ p: { rate: 1, passThrough: { default: 1, limit: 100 } } });
    void limiter.tryAcquire({ policy: 'p', key: 'k' });
    const waiting = limiter.acquire({ policy: 'p', key: 'k' });
    await clock.advanceAsync(1000);
    expect((await waiting).isPassedOver).toBeUndefined();
  });

  it('has the figures of promotions from one moment to the next (V-E15)', () => {
    start();
    const promo = { ...MERCHANT, tiers: PROMO };
    limiter.prepare({ revision: 1, policies: { merchant: promo }, removed: [] })();
    const capacities = Object.keys(PROMO).map(
      (tier) => limiter.policy('merchant')!.tiers.get(tier)!.capacity,
    );
    expect(capacities).toEqual([50_000, 20_000, 5000, 500]);
    expect(passing('S', 60_000)).toBeGreaterThanOrEqual(50_000);
    limiter.prepare({
      revision: 2,
      policies: { merchant: { ...promo, passThrough: undefined } },
      removed: [],
    })();
    clock.advance(1000);
    expect(passing('C', 600)).toBe(500);
    expect(passing('S', 51_000)).toBe(50_000);
  });

  it('is shared by all processes on Redis', async () => {
    clock = new ManualClock();
    const { url } = await startRedis();
    const policies = {
      p: {
        ...({ rate: '2/h', sync: 'exact' } as const),
        passThrough: { default: 1, limit: { rate: '3/h', burst: 3 } },
      },
    } as const;
    const two = [1, 2].map(() =>
      createRateLimiter({ policies, store: { type: 'redis', url, decisionTimeout: '10s' } }),
    );
    limiter = two[0]!;
    await Promise.all(two.map((one) => one.ready()));
    let passed = 0;
    for (let i = 0; i < 12; i++) {
      const decision = await two[i % 2]!.tryAcquire({ policy: 'p', key: 'k' });
      if (decision.allowed) passed++;
    }
    await two[1]!.close();
    expect(passed).toBe(5);
  });

  it.each<[string, object]>([
    ['policies.p.passThrough.limit', { default: 0.5 }],
    ['policies.p.passThrough.default', { default: 1.5, limit: 5 }],
    ['policies.p.passThrough.default', { default: '1/s', limit: 5 }],
    ['policies.p.passThrough', { gold: 0.5, limit: 5 }],
    ['policies.p.passThrough.limit.rate', { default: 0.5, limit: 0 }],
    ['policies.p.passThrough.limit.moon', { default: 0.5, limit: { moon: 5 } }],
    ['policies.p.passThrough', [0.5]],
  ])('is refused by name: %s in %j', (field, passThrough) => {
    start({});
    let error: unknown;
    try {
      checkPolicy('p', { rate: 10, passThrough: passThrough as never });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect(error).toMatchObject({ field });
  });
});
