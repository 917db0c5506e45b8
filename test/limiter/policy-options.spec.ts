import {
  createRateLimiter,
  UnknownOptionError,
  type PolicyInput,
  type Rate,
  type RateLimiterOptions,
} from 'nestjs-weir';
import { errorWith, refusal, unknownOption } from '../support/errors.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

/** A limiter of one policy `p`, given as a file or plain JavaScript would give it. */
const withPolicy = (policy: unknown) => () =>
  createRateLimiter({ policies: { p: policy as PolicyInput }, clock: new ManualClock() });

/** Values that cannot be a figure of any kind. */
const NO_NUMBERS = [0, -1, NaN, Infinity, -Infinity, '', null, true, [], {}];

const SHAPER = { algorithm: 'leaky-bucket', mode: 'shaper', rate: 10 } as const;
const WINDOW = { algorithm: 'sliding-window', rate: 10 } as const;

describe('a policy is refused when the limiter is made', () => {
  it.each([...NO_NUMBERS, '5', '0/s', '-5/s', 'x/s', '5/', '5/0s', '5/fortnight'])(
    'V-B14, V-C9: with the rate %p',
    (rate) => {
      const field = 'policies.p.rate';
      expect(withPolicy({ rate })).toThrow(errorWith({ code: 'INVALID_ARGUMENT', field }));
    },
  );

  it.each([...NO_NUMBERS, 1.5, '5', 2e12])('V-B14: with the burst %p', (burst) => {
    expect(withPolicy({ rate: 10, burst })).toThrow(refusal('policies.p.burst', burst));
  });

  it.each([...NO_NUMBERS, 1.5, '5'])('with the cost %p', (cost) => {
    expect(withPolicy({ rate: 10, cost })).toThrow(refusal('policies.p.cost', cost));
  });

  it('with a cost above the burst, of the policy or of any tier', () => {
    expect(withPolicy({ rate: 10, burst: 5, cost: 6 })).toThrow(refusal('policies.p.cost', 6));
    expect(withPolicy({ rate: 10, cost: 6, tiers: { low: { rate: 5 } } })).toThrow(
      refusal('policies.p.cost', 6),
    );
    expect(withPolicy({ algorithm: 'sliding-window', rate: 5, cost: 6 })).toThrow(
      refusal('policies.p.cost', 6),
    );
  });

  it.each([0, -1, NaN, Infinity, '', '5', '0s', 'fortnight', null, true, '366d', 31_536_000_001])(
    'with the period %p',
    (period) => {
      expect(withPolicy({ rate: 10, period })).toThrow(refusal('policies.p.period', period));
    },
  );

  it.each([0.999, '0.5ms', 0.0004, '0.0001ms', Number.MIN_VALUE])(
    'with a period of less than a millisecond, %p',
    (period) => {
      expect(withPolicy({ rate: 10, period })).toThrow(refusal('policies.p.period', period));
    },
  );

  it.each(['10/0.5ms', '10/366d'])('with a rate text whose period is out of bounds: %s', (rate) => {
    expect(withPolicy({ rate })).toThrow(errorWith({ field: 'policies.p.rate' }));
  });

  it.each([SHAPER, WINDOW, { rate: 10, algorithm: 'leaky-bucket' }])(
    'with leases for what is no token bucket: %p',
    (policy) => {
      const refused = errorWith({ code: 'INVALID_ARGUMENT', field: 'policies.p.sync' });
      expect(withPolicy({ ...policy, sync: 'leased' })).toThrow(refused);
      expect(withPolicy({ ...policy, sync: 'leased' })).toThrow(/only token buckets are leased/);
      expect(withPolicy({ ...policy, sync: 'auto' })).not.toThrow();
      expect(withPolicy({ ...policy, sync: 'exact' })).not.toThrow();
    },
  );

  it('with leases for buckets that each process has by itself', () => {
    const policy = { rate: 10, scope: 'node' };
    expect(withPolicy({ ...policy, sync: 'leased' })).toThrow(/scope: 'fleet'/);
    expect(withPolicy({ ...policy, sync: 'auto' })).not.toThrow();
  });

  it('with a burst that takes more than 100 years to fill', () => {
    const century = { rate: 1, period: '365d' };
    expect(withPolicy({ ...century, burst: 100 })).not.toThrow();
    expect(withPolicy({ ...century, burst: 101 })).toThrow(refusal('policies.p.burst', 101));
  });

  it('with a period beside a rate text, which has one', () => {
    expect(withPolicy({ rate: '10/s', period: '1m' })).toThrow(refusal('policies.p.period', '1m'));
  });

  it.each([
    ['algorithm', 'gcra'],
    ['algorithm', 'Token-Bucket'],
    ['algorithm', null],
    ['scope', 'cluster'],
    ['sync', 'lazy'],
    ['sync', true],
    ['failureMode', 'fail-open'],
    ['shadow', 'yes'],
    ['shadow', 1],
    ['maxWaiters', 0],
    ['maxWaiters', 1.5],
    ['maxWaiters', Infinity],
    ['defaultTier', 'gold'],
    ['defaultTier', 5],
  ])('with the %s %p', (option, value) => {
    expect(withPolicy({ rate: 10, [option]: value })).toThrow(
      refusal(`policies.p.${option}`, value),
    );
  });

  it.each(['delay', 'Shaper', '', null, true])('with the mode %p', (mode) => {
    expect(withPolicy({ ...SHAPER, mode })).toThrow(refusal('policies.p.mode', mode));
  });

  it.each([0, 0.5, -1, NaN, 'long', null, '366d'])('with the maxDelay %p', (maxDelay) => {
    expect(withPolicy({ ...SHAPER, maxDelay })).toThrow(refusal('policies.p.maxDelay', maxDelay));
  });

  it.each([0, 1, 121, 2.5, NaN, '10', null])('with the subWindows %p', (subWindows) => {
    expect(withPolicy({ ...WINDOW, subWindows })).toThrow(
      refusal('policies.p.subWindows', subWindows),
    );
  });

  it.each([
    ['mode', 'shaper', {}],
    ['mode', 'policer', { algorithm: 'token-bucket' }],
    ['mode', 'shaper', { algorithm: 'sliding-window' }],
    ['maxDelay', '1s', {}],
    ['maxDelay', '1s', { algorithm: 'sliding-window' }],
    ['maxDelay', '1s', { algorithm: 'leaky-bucket' }],
    ['maxDelay', '1s', { algorithm: 'leaky-bucket', mode: 'policer' }],
    ['subWindows', 10, {}],
    ['subWindows', 10, { algorithm: 'leaky-bucket', mode: 'shaper' }],
    ['burst', 10, { algorithm: 'sliding-window' }],
  ])('with the %s %p, which %j does not look at', (option, value, rest) => {
    expect(withPolicy({ rate: 10, ...rest })).not.toThrow();
    expect(withPolicy({ rate: 10, ...rest, [option]: undefined })).not.toThrow();
    expect(withPolicy({ rate: 10, ...rest, [option]: value })).toThrow(
      refusal(`policies.p.${option}`, value),
    );
  });

  it('with a rate that is not whole for a sliding window, which counts whole requests', () => {
    expect(withPolicy({ algorithm: 'sliding-window', rate: 1.5 })).toThrow(
      refusal('policies.p.rate', 1.5),
    );
  });

  it.each(['Rate', 'brust', 'ttl', 'constructor'])('with the unknown option %s', (option) => {
    expect(withPolicy({ rate: 10, [option]: 5 })).toThrow(unknownOption(`policies.p.${option}`));
  });

  it('with an unknown option, and lists those there are', () => {
    const lists = /no such option.*rate.*burst.*algorithm.*maxDelay.*defaultTier/;
    expect(withPolicy({ rate: 10, brust: 5 })).toThrow(lists);
  });

  it.each([null, undefined, 5, '10/s', true, [], [{ rate: 10 }]])('that is %p', (policy) => {
    expect(withPolicy(policy)).toThrow(refusal('policies.p', policy));
  });

  it.each([{}, { burst: 5 }, { tiers: {} }, { tiers: { vip: { rate: 5 } } }, { rate: undefined }])(
    'without a rate and without a default tier: %p',
    (policy) => {
      expect(withPolicy(policy)).toThrow(refusal('policies.p.rate', undefined));
    },
  );

  it.each(['', 'a b', 'a:b', 'a/b', '{a}', 'é', 'x'.repeat(65)])('with the name %p', (name) => {
    expect(() => createRateLimiter({ policies: { [name]: { rate: 1 } } })).toThrow(
      refusal('policies', name),
    );
  });
});

describe('a tier is refused when the limiter is made', () => {
  const withTier = (figures: unknown) => withPolicy({ rate: 10, tiers: { vip: figures } });

  it.each([0, -1, NaN, Infinity, 'x', null])('with the rate %p', (rate) => {
    expect(withTier({ rate })).toThrow(refusal('policies.p.tiers.vip.rate', rate));
  });

  it.each([0, -1, 1.5, NaN])('with the burst %p', (burst) => {
    expect(withTier({ burst })).toThrow(refusal('policies.p.tiers.vip.burst', burst));
  });

  it.each([0, 0.5, 'x', '366d'])('with the period %p', (period) => {
    expect(withTier({ period })).toThrow(refusal('policies.p.tiers.vip.period', period));
  });

  it('with a period beside a rate text, which has one', () => {
    expect(withTier({ rate: '5/s', period: '1m' })).toThrow(
      refusal('policies.p.tiers.vip.period', '1m'),
    );
  });

  it('with options that are the policy’s', () => {
    expect(withTier({ rate: 5, cost: 2 })).toThrow(unknownOption('policies.p.tiers.vip.cost'));
    expect(withTier({ rate: 5, cost: 2 })).toThrow('expected one of rate, period, burst');
  });

  it.each([null, true, undefined, [], [50]])('that is %p, and no rate or object', (figures) => {
    expect(withTier(figures)).toThrow(refusal('policies.p.tiers.vip', figures));
  });

  it.each([0, -1, NaN, Infinity, '', '50', '0/s', '-5/s', 'x/s'])('that is the rate %p', (rate) => {
    expect(withTier(rate)).toThrow(refusal('policies.p.tiers.vip.rate', rate));
  });

  it('with a burst for a sliding window', () => {
    expect(withPolicy({ ...WINDOW, tiers: { vip: { rate: 50, burst: 60 } } })).toThrow(
      refusal('policies.p.tiers.vip.burst', 60),
    );
  });

  it('with a rate that is not whole for a sliding window', () => {
    expect(withPolicy({ ...WINDOW, tiers: { vip: 1.5 } })).toThrow(
      refusal('policies.p.tiers.vip.rate', 1.5),
    );
  });

  it.each([50, '50/s', { rate: 50 }])('that is named default beside a rate: %j', (figures) => {
    expect(withPolicy({ rate: 10, tiers: { default: figures } })).toThrow(
      refusal('policies.p.tiers.default', figures),
    );
  });

  it.each([null, 5, 'vip', ['vip']])('in a list of tiers that is %p', (tiers) => {
    expect(withPolicy({ rate: 10, tiers })).toThrow(refusal('policies.p.tiers', tiers));
  });

  it('with a name that would not do as part of a key', () => {
    expect(withPolicy({ rate: 10, tiers: { 'a:b': { rate: 1 } } })).toThrow(
      refusal('policies.p.tiers', 'a:b'),
    );
  });

  it('without a rate, where the policy has none either', () => {
    expect(withPolicy({ tiers: { vip: { burst: 5 } }, defaultTier: 'vip' })).toThrow(
      refusal('policies.p.tiers.vip.rate', undefined),
    );
  });

  it('but a bad maxDelay is the policy’s fault, also where only tiers have rates', () => {
    const tiers = { vip: { rate: 5 } };
    const policy = { ...SHAPER, rate: undefined, maxDelay: 'x', tiers, defaultTier: 'vip' };
    expect(withPolicy(policy)).toThrow(refusal('policies.p.maxDelay', 'x'));
  });
});

describe('a limiter is refused', () => {
  const withOptions = (options: unknown) => () => createRateLimiter(options as RateLimiterOptions);

  it.each([
    ['store.type', 'etcd', { store: 'etcd' }],
    ['store.type', 'etcd', { store: { type: 'etcd' } }],
    ['store.type', undefined, { store: {} }],
    ['store', null, { store: null }],
    ['store', 5, { store: 5 }],
    ['store', true, { store: true }],
    ['store', ['memory'], { store: ['memory'] }],
    ['store.type', '', { store: '' }],
    ['store.maxKeys', 0, { store: { type: 'memory', maxKeys: 0 } }],
    ['store.maxKeys', 1.5, { store: { type: 'memory', maxKeys: 1.5 } }],
    ['store.maxKeys', Infinity, { store: { type: 'memory', maxKeys: Infinity } }],
    ['store.maxKeys', 1e8, { store: { type: 'memory', maxKeys: 1e8 } }],
    ['store.idleTimeout', 0, { store: { type: 'memory', idleTimeout: 0 } }],
    ['store.idleTimeout', 'x', { store: { type: 'memory', idleTimeout: 'x' } }],
    ['store.idleTimeout', 0.5, { store: { type: 'memory', idleTimeout: 0.5 } }],
    ['store.maxBatch', 0, { store: { type: 'redis', maxBatch: 0 } }],
    ['store.decisionTimeout', -1, { store: { type: 'redis', decisionTimeout: -1 } }],
    ['store.decisionTimeout', 0.5, { store: { type: 'redis', decisionTimeout: 0.5 } }],
    ['policies', 5, { policies: 5 }],
    ['policies', null, { policies: null }],
    ['policies', [{ rate: 1 }], { policies: [{ rate: 1 }] }],
    ['nodeId', '', { nodeId: '' }],
    ['nodeId', 5, { nodeId: 5 }],
  ])('with %s %p', (field, value, options) => {
    expect(withOptions(options)).toThrow(refusal(field, value));
  });

  it.each([
    ['store.maxkeys', { store: { type: 'memory', maxkeys: 5 } }],
    ['store.url', { store: { type: 'memory', url: 'redis://:hunter2@x' } }],
    ['store.pasword', { store: { type: 'redis', pasword: 'hunter2' } }],
    ['options.policy', { policy: { key: 'hunter2' } }],
  ])('with the unknown option %s, whose value it does not repeat', (field, options) => {
    expect(withOptions(options)).toThrow(unknownOption(field));
    expect(withOptions(options)).toThrow(UnknownOptionError);
    expect(withOptions(options)).not.toThrow(/hunter2/);
  });

  it('with an unknown option, and lists those there are', () => {
    expect(withOptions({ policy: {} })).toThrow(/policies, quota, store, nodeId, clock$/);
    expect(withOptions({ store: { type: 'memory', ttl: 5 } })).toThrow(
      /type, maxKeys, idleTimeout, sweepInterval$/,
    );
    expect(withOptions({ store: { type: 'redis', ttl: 5 } })).toThrow(
      /prefix, .*client, url, options, cluster$/,
    );
  });

  it.each([null, 5, 'memory', true, []])('with options that are %p', (options) => {
    expect(withOptions(options)).toThrow(refusal('options', options));
  });

  it('and leaves no timer behind', () => {
    const clock = new ManualClock();
    const policies = { good: { rate: 1 }, bad: {} as PolicyInput };
    const make = () => createRateLimiter({ policies, clock });
    expect(make).toThrow(refusal('policies.bad.rate', undefined));
    expect(clock.pending).toBe(0);
  });
});

describe('a policy', () => {
  it('has one second, the number in its rate as burst and cost 1 if it does not say', () => {
    const bench = new Bench({ rate: 4 });
    expect(bench.take()).toMatchObject({ limit: 4, remaining: 3, resetMs: 250 });
  });

  it('reads undefined options as not given', () => {
    const bench = new Bench({ rate: 4, burst: undefined, tiers: undefined });
    expect(bench.take()).toMatchObject({ limit: 4, remaining: 3, resetMs: 250 });
    const inText = new Bench({ rate: '4/s', period: undefined });
    expect(inText.take()).toMatchObject({ limit: 4, remaining: 3, resetMs: 250 });
  });

  it('does not take a period that came out as undefined for one second', () => {
    const period = process.env.A_PERIOD_THAT_NOBODY_SET as undefined;
    expect(() => new Bench({ rate: 100, period })).toThrow(
      'period: expected a duration, not undefined; without the field it is one second',
    );
  });

  it('may have less than one token per period', () => {
    const bench = new Bench({ rate: 0.5 });
    bench.take();
    expect(bench.take()).toMatchObject({ limit: 1, retryAfterMs: 2000 });
  });

  it('refills however slow its rate is', () => {
    const bench = new Bench({ rate: 1e-7, burst: 1 });
    bench.take();
    expect(bench.take()).toMatchObject({ allowed: false, retryAfterMs: 1e10 });
  });

  it.each<[Rate, number]>([
    ['100/s', 1000],
    ['100/min', 60_000],
    ['100/5m', 300_000],
    ['100 / 250ms', 250],
  ])('may have its period in the rate: %s', (rate, periodMs) => {
    expect(new Bench({ rate }).take(100)).toMatchObject({ limit: 100, resetMs: periodMs });
  });

  it('lends its tiers period and burst, but no burst to a tier that has a rate of its own', () => {
    const tiers = { vip: { rate: 50 }, deep: { burst: 40 }, slow: { period: '10m' } } as const;
    const bench = new Bench({ rate: 10, period: '1m', burst: 20, tiers });
    const of = (tier: string) => now(bench.limiter.peek({ policy: 'p', key: 'k', tier }));
    expect([of('vip').limit, of('deep').limit, of('slow').limit]).toEqual([50, 40, 20]);
    expect(bench.take(50, { tier: 'vip' }).resetMs).toBe(60_000);
    expect(bench.take(20, { tier: 'slow' }).resetMs).toBe(1_200_000);
  });

  it('lends its tiers the period that stands in its rate text, too', () => {
    const bench = new Bench({ rate: '100/min', tiers: { vip: { rate: 500 } } });
    expect(bench.take(500, { tier: 'vip' }).resetMs).toBe(60_000);
  });

  it('lends its tiers the rate that stands in its rate text, and leaves them their period', () => {
    const tiers = { fast: { period: '10s' }, deep: { burst: 300 } } as const;
    const bench = new Bench({ rate: '100/min', tiers });
    expect(bench.take(100, { tier: 'fast' })).toMatchObject({ limit: 100, resetMs: 10_000 });
    expect(bench.take(300, { tier: 'deep' })).toMatchObject({ limit: 300, resetMs: 180_000 });
  });

  it.each<[string, PolicyInput]>([
    ['a number and a period', { rate: 10, period: '1m' }],
    ['a text', { rate: '10/min' }],
    ['a number and a burst', { rate: 10, period: '1m', burst: 3 }],
  ])('may have tiers that are just a rate, beside %s', (_name, policy) => {
    const tiers = { vip: 50, gold: '500/h', half: 0.5 } as const;
    const bench = new Bench({ ...policy, tiers });
    const all = (tier: string, cost: number) => bench.take(cost, { tier });
    expect(all('vip', 50)).toMatchObject({ allowed: true, limit: 50, resetMs: 60_000 });
    expect(all('gold', 500)).toMatchObject({ allowed: true, limit: 500, resetMs: 3_600_000 });
    expect(all('half', 1)).toMatchObject({ allowed: true, limit: 1, resetMs: 120_000 });
    expect(all('unknown', 1).limit).toBe(policy.burst ?? 10);
  });

  it('may have tiers that are just a rate, of any algorithm', () => {
    const windows = new Bench({ ...WINDOW, tiers: { vip: '5/min' } });
    expect(windows.take(5, { tier: 'vip' })).toMatchObject({ limit: 5, remaining: 0 });
    windows.clock.advance(50_000);
    expect(windows.take(1, { tier: 'vip' }).allowed).toBe(false);
    const shaper = new Bench({ ...SHAPER, tiers: { vip: 2 } });
    shaper.take(1, { tier: 'vip' });
    expect(shaper.take(1, { tier: 'vip' }).delayMs).toBe(500);
  });

  it('may have no figures of its own but a period for its tiers', () => {
    const bench = new Bench({ period: '1m', tiers: { normal: 6 }, defaultTier: 'normal' });
    expect(bench.take(6)).toMatchObject({ limit: 6, resetMs: 60_000 });
  });

  it('may call a tier default if it has no rate itself: that is what it says', () => {
    const bench = new Bench({ tiers: { default: 5, vip: 50 } });
    expect(bench.take()).toMatchObject({ limit: 5, remaining: 4 });
    expect(bench.take(1, { tier: 'default' })).toMatchObject({ limit: 5, remaining: 3 });
    expect(bench.take(1, { tier: 'vip' })).toMatchObject({ limit: 50, remaining: 49 });
  });
});
