import fc from 'fast-check';
import {
  createRateLimiter,
  type LimitInput,
  type LimitOptions,
  type PolicyFields,
  type RateLimiter,
} from 'nestjs-weir';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import { DeniedKeys } from '../../lib/limiter/denied-keys.js';
import { GivenRoom } from '../../lib/limiter/given-limits.js';
import { PolicyBinder } from '../../lib/limiter/policy-binder.js';
import { checkPolicy } from '../../lib/limiter/policy-options.js';
import { BucketTable } from '../../lib/stores/memory/bucket-table.js';
import { MemoryStore } from '../../lib/stores/memory/memory-store.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';
import { statesOf, Waiter } from '../support/waiters.js';

const K = { policy: 'p', key: 'k' };
const PLAN = { rate: 3, period: '1h' } as const;
const ALGORITHMS: [name: string, policy: PolicyFields][] = [
  ['token bucket', { algorithm: 'token-bucket' }],
  ['leaky policer', { algorithm: 'leaky-bucket' }],
  ['leaky shaper', { algorithm: 'leaky-bucket', mode: 'shaper' }],
  ['sliding window', { algorithm: 'sliding-window' }],
];

function passes(limiter: RateLimiter, limit: LimitInput | undefined, count: number): number {
  let passed = 0;
  for (let i = 0; i < count; i++) if (now(limiter.tryAcquire({ ...K, limit })).allowed) passed++;
  return passed;
}

describe('a limit that comes with the request', () => {
  it.each(ALGORITHMS)('decides in place of the own figures: %s', (_name, policy) => {
    const { limiter } = new Bench({ ...policy, rate: 1, period: '1h' });
    expect(passes(limiter, PLAN, 5)).toBe(3);
    expect(passes(limiter, { rate: 2, period: '1h' }, 5)).toBe(2);
    expect(passes(limiter, undefined, 5)).toBe(1);
    expect(now(limiter.peek({ ...K, limit: PLAN }))).toMatchObject({ allowed: false, limit: 3 });
  });

  it('is the same bucket in whatever words, and another one with other figures', () => {
    const { limiter } = new Bench({ rate: 1 });
    const same: LimitInput[] = [
      ...['60/min', { rate: '60/min' }, { rate: 60, period: '1m' }, { rate: 60, period: 60_000 }],
      ...[
        { rate: '60/60s', burst: 60 },
        { rate: 1, period: '1s', burst: 60 },
        { rate: 1, burst: 60 },
      ],
      { rate: 60, period: '1m', burst: undefined },
    ];
    for (const [index, limit] of same.entries()) {
      const { remaining, limit: all } = now(limiter.tryAcquire({ ...K, limit }));
      expect([limit, remaining, all]).toEqual([limit, 59 - index, 60]);
    }
    for (const limit of [{ rate: '60/min', burst: 61 }, '61/min', { rate: 2, burst: 60 }]) {
      const { remaining, limit: all } = now(limiter.tryAcquire({ ...K, limit }));
      expect([limit, remaining]).toEqual([limit, all - 1]);
    }
  });

  it('has the period of the policy, as a tier has, and its rate where only a burst is said', () => {
    const { limiter } = new Bench({ rate: '5/h', burst: 7 });
    expect(now(limiter.tryAcquire({ ...K, limit: 4, cost: 4 })).resetMs).toBe(3_600_000);
    expect(now(limiter.tryAcquire({ ...K, limit: { burst: 10 }, cost: 5 })).resetMs).toBe(
      3_600_000,
    );
    expect(now(limiter.tryAcquire({ ...K, limit: { rate: 4 } })).allowed).toBe(false);
  });

  it('tells how long its bucket takes to fill; a named limit need not', () => {
    const { limiter } = new Bench({ rate: 1 });
    const given = now(limiter.tryAcquire({ ...K, limit: { rate: 2, burst: 10 } }));
    expect(given).toMatchObject({ limit: 10, windowMs: 5000, policy: 'p', tier: 'policy' });
    expect(now(limiter.tryAcquire(K))).not.toHaveProperty('windowMs');
  });

  it('is taken by all that a limiter can be asked', async () => {
    const { limiter } = new Bench({ rate: 1, period: '1h' });
    const asked = { ...K, limit: PLAN };
    expect(limiter.allow('p', 'k', PLAN)).toBe(true);
    expect(limiter.allowN('p', 'k', 2, PLAN)).toBe(true);
    expect(limiter.allow('p', 'k', PLAN)).toBe(false);
    void limiter.refund({ ...asked, cost: 2 });
    expect(now(limiter.peek(asked)).remaining).toBe(2);
    expect((await limiter.acquire({ ...asked, cost: 2 })).remaining).toBe(0);
    void limiter.reset(asked);
    expect(now(limiter.peek(asked)).remaining).toBe(3);
    expect(limiter.stats().policies.p).toMatchObject({ allowed: 3, denied: 1, defaulted: 0 });
    expect(limiter.checkLimit('p', PLAN)).toBeUndefined();
    expect(() => limiter.checkLimit('p', PLAN, 4)).toThrow('at most 3');
  });

  it('keeps callers in a line of its own', async () => {
    const bench = new Bench({ rate: 1 });
    const { limiter, clock } = bench;
    const given = { limit: { rate: 2, burst: 1 } };
    passes(limiter, given.limit, 1);
    passes(limiter, undefined, 1);
    const waiters = [given, given, {}].map((asked) => new Waiter(bench, asked));
    clock.advance(500);
    expect(await statesOf(...waiters)).toEqual(['granted', 'waiting', 'waiting']);
    clock.advance(500);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'granted']);
  });

  it('takes part in lists, which are all or nothing', () => {
    const limiter = createRateLimiter({
      policies: { p: { rate: 1, period: '1h' }, q: { rate: 2, period: '1h' } },
      clock: new ManualClock(),
    });
    const list = [
      { ...K, limit: PLAN },
      { policy: 'q', key: 'k' },
    ];
    expect([1, 2, 3].map(() => now(limiter.tryAcquire(list)).allowed)).toEqual([true, true, false]);
    expect(now(limiter.peek({ ...K, limit: PLAN })).remaining).toBe(1);
    const twice = [
      { ...K, limit: PLAN },
      { ...K, limit: '3/h' },
    ];
    expect(() => limiter.tryAcquire(twice)).toThrow('each policy and key once');
  });

  it('is only watched by a policy that only watches', () => {
    const { limiter } = new Bench({ rate: 1, shadow: true });
    expect(passes(limiter, PLAN, 5)).toBe(5);
    expect(limiter.stats().policies.p).toMatchObject({ allowed: 3, shadowDenied: 2 });
  });
});

describe('figures that are none', () => {
  const bad: [what: string, limit: unknown, field: string, policy?: PolicyFields][] = [
    ['a rate of 0', { rate: 0 }, 'limit.rate'],
    ['a negative rate', { rate: -1 }, 'limit.rate'],
    ['NaN', { rate: NaN }, 'limit.rate'],
    ['infinity', { rate: Infinity }, 'limit.rate'],
    ['a burst of NaN', { rate: 1, burst: NaN }, 'limit.burst'],
    ['a burst of 0', { rate: 1, burst: 0 }, 'limit.burst'],
    ['half a burst', { rate: 1, burst: 1.5 }, 'limit.burst'],
    ['null from a database', { rate: 5, burst: null }, 'limit.burst'],
    ['a rate that is null', { rate: null }, 'limit.rate'],
    ['a text that is no rate', { rate: 'fast' }, 'limit.rate'],
    ['a mere number as a text', { rate: '100' }, 'limit.rate'],
    ['a text alone that is no rate', '100', 'limit.rate'],
    ['a period that is none', { rate: 1, period: 'soon' }, 'limit.period'],
    ['a period beside a rate text', { rate: '1/s', period: '1m' }, 'limit.period'],
    ['a field that is none', { rate: 1, brust: 2 }, 'limit.brust'],
    ['nothing in it', {}, 'limit'],
    ['a field that nobody filled in', { rate: undefined }, 'limit'],
    ['null', null, 'limit'],
    ['a list', [5], 'limit'],
    ['true', true, 'limit'],
    [
      'a burst that takes more than a century',
      { rate: 1, period: '365d', burst: 101 },
      'limit.burst',
    ],
    [
      'a window with a burst',
      { rate: 5, burst: 5 },
      'limit.burst',
      { algorithm: 'sliding-window' },
    ],
    ['half a request in a window', { rate: 0.5 }, 'limit.rate', { algorithm: 'sliding-window' }],
    ['less than a request costs', { rate: 2 }, 'cost', { cost: 3, rate: 5 }],
  ];

  const rows = bad.map(
    ([what, limit, field, policy = {}]) => [what, limit, field, policy] as const,
  );

  it.each(rows)('are told by the call itself: %s', async (_what, input, field, policy) => {
    const { limiter } = new Bench({ rate: 1, ...policy });
    const limit = input as LimitInput;
    const asked = { ...K, limit };
    const error = expect.objectContaining({ field }) as Error;
    // Also if figures that were right have been seen before.
    passes(limiter, '7/s', 1);
    expect(() => limiter.tryAcquire(asked)).toThrow(error);
    expect(() => limiter.tryAcquire([asked])).toThrow(error);
    expect(() => limiter.allow('p', 'k', limit)).toThrow(error);
    expect(() => limiter.allowN('p', 'k', 1, limit)).toThrow(error);
    expect(() => limiter.peek(asked)).toThrow(error);
    expect(() => limiter.refund(asked)).toThrow(error);
    expect(() => limiter.reset(asked)).toThrow(error);
    expect(() => limiter.checkLimit('p', limit)).toThrow(error);
    await expect(limiter.acquire(asked)).rejects.toEqual(error);
  });

  it('are no name of a tier, and stand beside none', () => {
    const { limiter } = new Bench({ rate: 1, tiers: { vip: 2 } });
    expect(() => limiter.tryAcquire({ ...K, tier: 'vip', limit: 5 })).toThrow(
      "none beside a 'limit'",
    );
    const cost = { ...K, limit: 5, cost: 6 };
    expect(() => limiter.tryAcquire(cost)).toThrow('at most 5');
    expect(() => limiter.checkLimit('q', 5)).toThrow('unknown policy "q"');
  });
});

describe('sets of figures', () => {
  const setOf = (index: number): LimitOptions => ({ rate: 1, burst: 10 + index });

  it('are a thousand at most; more have the default tier, and are counted', () => {
    const { limiter, clock } = new Bench({ rate: 5 });
    for (let i = 0; i < 1000; i++) expect(passes(limiter, setOf(i), 1)).toBe(1);
    expect(now(limiter.tryAcquire({ ...K, limit: setOf(1000) }))).toMatchObject({ limit: 5 });
    expect(passes(limiter, setOf(1000), 10)).toBe(4);
    expect(limiter.stats().policies.p).toMatchObject({ defaulted: 11 });
    // Those that are known go on meanwhile.
    expect(now(limiter.tryAcquire({ ...K, limit: setOf(999) }))).toMatchObject({ limit: 1009 });
    clock.advance(15_000);
    expect(now(limiter.tryAcquire({ ...K, limit: setOf(1000) }))).toMatchObject({ limit: 5 });
    // The first one would have been full again after ten seconds; it counts for twice that, and more.
    clock.advance(30_000);
    expect(now(limiter.tryAcquire({ ...K, limit: setOf(1000) }))).toMatchObject({ limit: 1010 });
    expect(limiter.stats().policies.p).toMatchObject({ defaulted: 12 });
  });

  it('take little memory: a table of few keys is small', () => {
    const clock = new ManualClock();
    const store = new MemoryStore({ maxKeys: 1e6, idleTimeoutMs: 1e6 }, clock);
    const policy = checkPolicy('p', { rate: 5 });
    const before = process.memoryUsage().arrayBuffers;
    const outcome = new Outcome();
    const tables = Array.from({ length: 1000 }, () => store.open(policy.limits.get('default')!));
    for (const table of tables) table.take('k', 1, outcome);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4e6);
    // It grows with its keys, and forgets none.
    for (let i = 0; i < 10_000; i++) tables[0]!.take(`k${i}`, 1 + (i % 5), outcome);
    for (let i = 0; i < 10_000; i++) {
      tables[0]!.peek(`k${i}`, 1, outcome);
      // After one more.
      expect(outcome.level / policy.limits.get('default')!.perToken).toBe(Math.max(0, 3 - (i % 5)));
    }
  });

  interface Step {
    readonly gapMs: number;
    readonly set: number;
    readonly key: string;
    readonly cost: number;
    readonly sweeps: boolean;
  }

  const SETS: LimitOptions[] = [
    ...([{ rate: 1 }, { rate: 2, burst: 3 }, { rate: '3/10s' }, { rate: 1, burst: 5 }] as const),
    { rate: 7, period: '2s' },
    { rate: '1/4s', burst: 4 },
  ];
  const WINDOWS: LimitOptions[] = [
    ...([{ rate: 1 }, { rate: 2 }, { rate: '3/10s' }, { rate: 5 }] as const),
    ...([{ rate: 7, period: '2s' }, { rate: '1/4s' }] as const),
  ];
  const steps = fc.array(
    fc.record<Step>({
      gapMs: fc.oneof(
        { weight: 5, arbitrary: fc.integer({ min: 0, max: 2000 }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 60_000 }) },
      ),
      set: fc.nat({ max: SETS.length - 1 }),
      key: fc.constantFrom('a', 'b'),
      cost: fc.integer({ min: 1, max: 3 }),
      sweeps: fc.boolean(),
    }),
    { maxLength: 80 },
  );

  it.each(ALGORITHMS)('that are forgotten free no tokens: %s', (_name, policy) => {
    const figures = policy.algorithm === 'sliding-window' ? WINDOWS : SETS;
    fc.assert(
      fc.property(steps, (history) => {
        const clock = new ManualClock();
        const memory = new MemoryStore({ maxKeys: 100, idleTimeoutMs: 1e6 }, clock);
        const room = new GivenRoom(3);
        const binder = new PolicyBinder(memory, false, 100, room, new DeniedKeys());
        const { given } = binder.bind(checkPolicy('p', { ...policy, rate: 1 }), undefined, 0);
        /** Beside it, buckets that nobody ever forgets. */
        const twins = new Map<number, BucketTable>();
        const [outcome, expected] = [new Outcome(), new Outcome()];
        for (const { gapMs, set, key, cost, sweeps } of history) {
          clock.jump(gapMs * 1000);
          if (sweeps) room.sweep(clock.now());
          const bound = given.find(figures[set]!, clock.now());
          if (bound === undefined) continue;
          const twin = twins.get(set) ?? BucketTable.uncounted(bound.figures);
          twins.set(set, twin);
          const fits = Math.min(cost, bound.figures.capacity);
          outcome.nowMicros = expected.nowMicros = clock.now();
          bound.table!.take(key, fits, outcome);
          twin.take(key, fits, expected);
          expect(outcome).toEqual(expected);
        }
        expect([...given.limits()].length).toBeLessThanOrEqual(3);
      }),
      { numRuns: 150 },
    );
  });

  it('follow a change of their policy: what was used stays used', () => {
    const { limiter } = new Bench({ rate: 1, period: '1h', maxWaiters: 5 });
    const install = (revision: number, p: PolicyFields): void =>
      limiter.prepare({ revision, policies: { p } })();
    const left = (limit: LimitInput): number => now(limiter.peek({ ...K, limit })).remaining;
    expect(passes(limiter, '3/h', 2)).toBe(2);
    install(1, { rate: 9, period: '1h', failureMode: 'closed' });
    expect(left('3/h')).toBe(1);
    install(2, { rate: 9, period: '1h', shadow: true });
    expect(passes(limiter, '3/h', 3)).toBe(3);
    install(3, { rate: 9, period: '1m' });
    expect(left('3/h')).toBe(0);
    // A rate alone is one of the policy's period, which is another one now.
    expect(left({ rate: 3 })).toBe(3);
    install(4, { rate: 9, period: '1m', cost: 4 });
    expect(() => limiter.peek({ ...K, limit: '3/h' })).toThrow('at most 3');
    install(5, { rate: 9, period: '1m' });
    expect(left('3/h')).toBe(3);
    passes(limiter, { rate: '3/h', burst: 4 }, 2);
    install(6, { algorithm: 'sliding-window', rate: 9, period: '1m' });
    expect(left('3/h')).toBe(3);
    expect(() => limiter.peek({ ...K, limit: { rate: '3/h', burst: 4 } })).toThrow('no burst');
    limiter.prepare({ revision: 7, policies: {} })();
    expect(() => limiter.peek({ ...K, limit: '3/h' })).toThrow('unknown policy');
    expect(limiter.stats().keys).toBe(0);
  });

  it('wake those who wait when their policy changes', async () => {
    const bench = new Bench({ rate: 1, period: '1h' });
    const { limiter } = bench;
    passes(limiter, '3/h', 3);
    const waiter = new Waiter(bench, { limit: '3/h' });
    expect(await statesOf(waiter)).toEqual(['waiting']);
    limiter.prepare({ revision: 1, policies: { p: { rate: 9, cost: 4 } } })();
    expect(await statesOf(waiter)).toEqual(['rejected']);
  });
});
