import { type QuotaOptions, type RateLimiterOptions } from 'nestjs-weir';
import { WeirRateLimiter } from '../../lib/limiter/weir-rate-limiter.js';
import { errorWith } from '../support/errors.js';
import { now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

const APP = { guaranteed: 1000, burst: 4000, priority: 0 } as const;

function quotaOf(apps: QuotaOptions['apps'], more: Partial<QuotaOptions> = {}): QuotaOptions {
  return { cluster: { capacity: 10_000 }, apps, ...more };
}

describe('a quota that changes while the limiter runs', () => {
  const made: WeirRateLimiter[] = [];

  function open(options: RateLimiterOptions = { quota: quotaOf({ a: APP, b: APP }) }) {
    const clock = new ManualClock();
    const limiter = new WeirRateLimiter({ clock, ...options });
    made.push(limiter);
    const change = (revision: number, quota: QuotaOptions | undefined): (() => void) => {
      return limiter.prepare({ revision, policies: {}, ...(quota && { quota }) });
    };
    return { clock, limiter, change };
  }

  afterAll(() => Promise.all(made.map((limiter) => limiter.close())));

  describe('is refused whole', () => {
    it.each<[string, QuotaOptions, object]>([
      [
        'guarantees beyond the capacity',
        quotaOf({ a: { guaranteed: 9999 } }),
        { code: 'INVALID_ARGUMENT', field: 'quota.apps' },
      ],
      ['no apps', quotaOf({}), { code: 'INVALID_ARGUMENT', field: 'quota.apps' }],
      [
        'a figure that can never work',
        quotaOf({ a: { guaranteed: 0 } }),
        { code: 'INVALID_ARGUMENT', field: 'quota.apps.a.guaranteed' },
      ],
      [
        'another cluster',
        quotaOf({ a: APP }, { clusterId: 'other' }),
        { code: 'RESTART_NEEDED', field: 'quota.clusterId', value: 'other' },
      ],
    ])('because of %s, and nothing has changed', async (_why, quota, expected) => {
      const { limiter, change } = open();
      const before = await limiter.quota.status();
      expect(() => change(1, quota)).toThrow(errorWith(expected));
      expect(await limiter.quota.status()).toEqual(before);
      expect(now(limiter.tryAcquire({ app: 'b' }))).toMatchObject({ allowed: true, limit: 4000 });
    });

    it('because of more than 1,000 apps', () => {
      const many = (count: number): QuotaOptions => {
        const apps = Array.from(
          { length: count },
          (_, i) => [`app-${i}`, { guaranteed: 1 }] as const,
        );
        return { apps: Object.fromEntries(apps) };
      };
      expect(() => open().change(1, many(1000))).not.toThrow();
      const tooMany = { code: 'INVALID_ARGUMENT', field: 'quota.apps', value: 1001 };
      expect(() => open().change(1, many(1001))).toThrow(errorWith(tooMany));
    });

    it('because it is turned off', () => {
      const off = { code: 'RESTART_NEEDED', field: 'quota', value: undefined };
      expect(() => open().change(1, undefined)).toThrow(errorWith(off));
    });

    it('by nobody who has none: it is that of another service', () => {
      const { limiter, change } = open({ policies: { p: { rate: 1 } } });
      change(1, quotaOf({ a: APP }))();
      expect(limiter.revision).toBe(1);
      expect(() => limiter.tryAcquire({ app: 'a' })).toThrow(errorWith({ field: 'app' }));
    });

    it('because its revision is behind', () => {
      const { change } = open();
      change(5, quotaOf({ a: APP }))();
      expect(() => change(4, quotaOf({ a: APP }))).toThrow(
        errorWith({ code: 'INVALID_ARGUMENT', field: 'revision', value: 4 }),
      );
      expect(() => change(5, quotaOf({ a: APP }))()).not.toThrow();
    });
  });

  it('has no effect before it is put into effect', () => {
    const { limiter, change } = open();
    const commit = change(1, quotaOf({ a: { ...APP, burst: 2000 } }));
    expect(now(limiter.tryAcquire({ app: 'b' }))).toMatchObject({ allowed: true });
    expect(now(limiter.tryAcquire({ app: 'a' }))).toMatchObject({ limit: 4000 });
    commit();
    expect(now(limiter.tryAcquire({ app: 'a' }))).toMatchObject({ limit: 2000 });
    expect(() => limiter.tryAcquire({ app: 'b' })).toThrow(
      errorWith({ code: 'UNKNOWN_APP', value: 'b' }),
    );
  });

  it('has apps that come, go and come back, each under its own name', async () => {
    const { clock, limiter, change } = open();
    for (let i = 0; i < 3; i++) now(limiter.tryAcquire({ app: 'b' }));
    change(1, quotaOf({ a: APP, aa: APP }))();
    expect(now(limiter.tryAcquire({ app: 'aa', cost: 1 })).allowed).toBe(true);
    expect(Object.keys(limiter.stats().quota!.apps)).toEqual(['a', 'aa']);
    clock.advance(200);
    expect(Object.keys((await limiter.quota.status()).apps)).toEqual(['a', 'aa']);
    change(2, quotaOf({ a: APP, aa: APP, b: APP }))();
    clock.advance(200);
    expect(now(limiter.tryAcquire({ app: 'b' })).allowed).toBe(true);
    clock.advance(200);
    const { apps, revision } = await limiter.quota.status();
    expect(revision).toBe(2);
    expect(apps.b).toMatchObject({ used: 4 });
    expect(apps.aa).toMatchObject({ used: 1 });
    expect(apps.a).toMatchObject({ used: 0 });
  });

  it('takes tokens back that a request took before its app was gone', () => {
    const { limiter, change } = open();
    now(limiter.tryAcquire({ app: 'b' }));
    change(1, quotaOf({ a: APP }))();
    expect(() => limiter.refund({ app: 'b' })).not.toThrow();
    expect(() => limiter.refund({ app: 'never' })).toThrow(errorWith({ code: 'UNKNOWN_APP' }));
  });

  it('admits by the smaller limits from the change on, beside what was leased', () => {
    const { clock, limiter, change } = open({
      quota: { apps: { a: { guaranteed: 10_000, burst: 10_000 } } },
    });
    const perSecond = (): number => {
      let allowed = 0;
      for (let ms = 0; ms < 1000; ms++) {
        clock.advance(1);
        for (let i = 0; i < 15; i++) if (now(limiter.tryAcquire({ app: 'a' })).allowed) allowed++;
      }
      return allowed;
    };
    // Until what the bucket held at first is gone.
    for (let second = 0; second < 3; second++) perSecond();
    expect(perSecond()).toBeLessThanOrEqual(10_500);
    const { tokens } = limiter.stats().quota!.apps.a!;
    change(1, { apps: { a: { guaranteed: 1000, burst: 1000 } } })();
    expect(perSecond()).toBeLessThanOrEqual(1000 + 1000 + tokens);
    const later = perSecond();
    expect(later).toBeLessThanOrEqual(1100);
    expect(later).toBeGreaterThan(900);
    change(2, { apps: { a: { guaranteed: 10_000, burst: 10_000 } } })();
    perSecond();
    expect(perSecond()).toBeGreaterThan(9000);
  });

  it('checks costs by the new figures', () => {
    const { limiter, change } = open({ quota: quotaOf({ a: APP }, { maxCost: 10 }) });
    expect(now(limiter.tryAcquire({ app: 'a', cost: 10 })).allowed).toBe(true);
    change(1, { apps: { a: { guaranteed: 5, burst: 5 } }, maxCost: 5 })();
    expect(() => limiter.tryAcquire({ app: 'a', cost: 6 })).toThrow(
      errorWith({ code: 'COST_EXCEEDS_LIMIT', limit: 5 }),
    );
    // It was taken while it was allowed.
    expect(() => limiter.refund({ app: 'a', cost: 10 })).not.toThrow();
    expect(() => limiter.refund({ app: 'a', cost: 11 })).toThrow(errorWith({ limit: 10 }));
  });

  it('is refused by a limiter that is closed', async () => {
    const { limiter, change } = open();
    await limiter.close();
    expect(() => change(1, quotaOf({ a: APP }))).toThrow(errorWith({ code: 'LIMITER_CLOSED' }));
  });

  it.each([1, 100, 1000, 5000])(
    'V-A46: with 70,000 of a burst of 80,000 left, one of 30,000 leaves 30,000 (cost %i)',
    (cost) => {
      const quota = (guaranteed: number, burst: number): QuotaOptions => {
        return { apps: { a: { guaranteed, burst } }, maxCost: 5000 };
      };
      const { limiter, change } = open({ quota: quota(20_000, 80_000) });
      const admit = (most: number): number => {
        let tokens = 0;
        while (tokens < most && now(limiter.tryAcquire({ app: 'a', cost })).allowed) tokens += cost;
        return tokens;
      };
      expect(admit(10_000)).toBe(10_000);
      change(1, quota(20_000, 30_000))();
      expect(admit(Infinity)).toBeLessThanOrEqual(30_000);
    },
  );
});
