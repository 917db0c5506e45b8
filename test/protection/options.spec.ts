import {
  connectionShare,
  createRateLimiter,
  Protection,
  type ResourceInput,
  type RateKey,
  type ResourceOptions,
  type ResourcesInput,
} from 'nestjs-weir';
import { compileResource } from '../../lib/protection/resource-options.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

describe('the presets', () => {
  it('redis: 500 in flight, 100 ms of waiting, then 50 ms, values up to 1 MiB', () => {
    expect(compileResource('cache', 'redis', '')).toMatchObject({
      deadlineMicros: 50_000,
      bulkhead: { maxInFlight: 500, maxWaitMicros: 100_000 },
      maxValueBytes: 1_048_576,
      breaker: undefined,
    });
  });

  it('database: 200 in flight, 1 s of waiting, then 200 ms, 20 calls in 10 s, half of them', () => {
    expect(compileResource('db', 'database', '')).toMatchObject({
      deadlineMicros: 200_000,
      bulkhead: { maxInFlight: 200, maxWaitMicros: 1_000_000, heldWarningMicros: 2_000_000 },
      breaker: {
        windowMicros: 10_000_000,
        minimumCalls: 20,
        errorRate: 0.5,
        slowRate: 0.5,
        slowMicros: 200_000,
        leaseMicros: 400_000,
      },
      slow: { thresholdMicros: 200_000, sampleEvery: 1 },
    });
  });

  it('are a place to begin: single figures and whole parts can differ', () => {
    const input: ResourceInput = {
      preset: 'database',
      deadline: '1s',
      bulkhead: { maxInFlight: 20 },
      breaker: false,
    };
    expect(compileResource('db', input, '')).toMatchObject({
      deadlineMicros: 1_000_000,
      bulkhead: { maxInFlight: 20, maxQueue: 20, maxWaitMicros: 1_000_000 },
      breaker: undefined,
    });
  });
});

describe('connections to a database', () => {
  it('are shared by shards and processes (V-E23)', () => {
    const one = { maxConnections: 300, reserved: 100 };
    expect(connectionShare(one)).toEqual({ perShard: 200, inAll: 200, perInstance: 200 });
    expect(connectionShare({ ...one, shards: 256, instances: 4 })).toEqual({
      perShard: 200,
      inAll: 51_200,
      perInstance: 50,
    });
    expect(connectionShare({ ...one, instances: 3 }).perInstance).toBe(66);
  });

  it.each([
    [{ maxConnections: 0 }, 'maxConnections'],
    [{ maxConnections: 100, reserved: 100 }, 'reserved'],
    [{ maxConnections: 100, reserved: -1 }, 'reserved'],
    [{ maxConnections: 100, shards: 0.5 }, 'shards'],
    [{ maxConnections: 100, reserved: 98, instances: 3 }, 'instances'],
    [{ maxConnections: 100, shard: 5 }, 'shard'],
  ])('cannot be shared by %j', (figures, field) => {
    expect(() => connectionShare(figures)).toThrow(`connectionShare.${field}`);
  });
});

describe('options that cannot work', () => {
  it.each<[unknown, string]>([
    [{ db: 'postgres' }, 'protection.db'],
    [{ db: 5 }, 'protection.db'],
    [{ db: null }, 'protection.db'],
    [{ db: { preset: 'postgres' } }, 'protection.db.preset'],
    [{ db: { timeout: 5 } }, 'protection.db.timeout'],
    [{ db: { deadline: 0 } }, 'protection.db.deadline'],
    [{ db: { deadline: 'soon' } }, 'protection.db.deadline'],
    [{ db: { bulkhead: 5 } }, 'protection.db.bulkhead'],
    [{ db: { bulkhead: { maxInFlight: 0 } } }, 'protection.db.bulkhead.maxInFlight'],
    [{ db: { bulkhead: { maxQueue: -1 } } }, 'protection.db.bulkhead.maxQueue'],
    [{ db: { bulkhead: { max: 1 } } }, 'protection.db.bulkhead.max'],
    [{ db: { breaker: { errorRate: 50 } } }, 'protection.db.breaker.errorRate'],
    [{ db: { breaker: { slowRate: 0 } } }, 'protection.db.breaker.slowRate'],
    [{ db: { breaker: { mode: 'open' } } }, 'protection.db.breaker.mode'],
    [{ db: { breaker: { window: { calls: 0 } } } }, 'protection.db.breaker.window.calls'],
    [{ db: { breaker: { window: { size: 5 } } } }, 'protection.db.breaker.window.size'],
    [
      { db: { breaker: { window: { calls: 5 }, minimumCalls: 6 } } },
      'protection.db.breaker.minimumCalls',
    ],
    [{ db: { slow: { sampleEvery: 0 } } }, 'protection.db.slow.sampleEvery'],
    [{ db: { maxValueBytes: '1MB' } }, 'protection.db.maxValueBytes'],
    [{ db: { isFailure: 'always' } }, 'protection.db.isFailure'],
    [{ db: { bulkhead: { limit: 'vegas' } } }, 'protection.db.bulkhead.limit'],
    [{ db: { throttle: true } }, 'protection.db.throttle'],
    [{ db: { throttle: { ratio: 0.5 } } }, 'protection.db.throttle.ratio'],
    [{ db: { throttle: { window: 0 } } }, 'protection.db.throttle.window'],
    [{ db: { throttle: { minimumCalls: 0 } } }, 'protection.db.throttle.minimumCalls'],
    [{ db: { throttle: { most: 1 } } }, 'protection.db.throttle.most'],
    [{ db: { throttle: { most: NaN } } }, 'protection.db.throttle.most'],
    [{ db: { throttle: { isRefusal: 429 } } }, 'protection.db.throttle.isRefusal'],
    [{ db: { throttle: { part: 1 } } }, 'protection.db.throttle.part'],
    [{ db: { rate: 5 } }, 'protection.db.rate'],
    [{ db: { rate: 'reads' } }, 'protection.db.rate'],
    [{ db: { rate: '' } }, 'protection.db.rate'],
    [{ db: { rate: {} } }, 'protection.db.rate.policy'],
    [{ db: { rate: { policy: 'reads', by: 0 } } }, 'protection.db.rate.by'],
    [{ db: { rate: { policy: 'reads', key: 0 } } }, 'protection.db.rate.key'],
    [{ db: { rate: { policy: 'reads', key: {} } } }, 'protection.db.rate.key.arg'],
    [{ db: { rate: { policy: 'reads', key: { arg: -1 } } } }, 'protection.db.rate.key.arg'],
    [{ db: { rate: { policy: 'reads', key: { arg: 'id' } } } }, 'protection.db.rate.key.arg'],
    [
      { db: { rate: { policy: 'reads', key: { arg: 0, path: '' } } } },
      'protection.db.rate.key.path',
    ],
    [{ db: { rate: { policy: 'reads', key: async () => 'a' } } }, 'protection.db.rate.key'],
    ['redis', 'protection'],
  ])('%j: the error names %s', (resources, field) => {
    expect(() => new Protection(resources as ResourcesInput)).toThrow(
      expect.objectContaining({ field }) as Error,
    );
  });

  it('of a single call are errors too', async () => {
    const bench = new Bench({});
    const call = bench.call({ timeout: 5 } as never);
    await settle();
    expect(call.error).toMatchObject({ code: 'UNKNOWN_OPTION', field: 'run.timeout' });
    expect(() => bench.protection.switchBreaker('db', 'forced')).toThrow('a breaker to switch');
    expect(() => bench.protection.checkValue('nope', 1)).toThrow('unknown resource "nope"');
    expect(() => bench.protection.on('nope' as never, () => {})).toThrow('one of');
  });
});

describe('the rate of a resource', () => {
  const benchWith = (rate: ResourceOptions['rate'] & {}, more: ResourceOptions = {}) => {
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      clock,
      policies: {
        few: { rate: '2/s' },
        shaped: { algorithm: 'leaky-bucket', mode: 'shaper', rate: '10/s', burst: 5 },
      },
    });
    const breaker = { minimumCalls: 100 };
    const options = { rate, breaker, ...more };
    const protection = new Protection({ db: options }, { clock, limiter });
    return { clock, limiter, protection, stats: () => protection.stats().db! };
  };

  it('turns away what is above it, and says when to come back', async () => {
    const { protection, stats } = benchWith('few');
    const run = () => protection.run('db', () => 'ok').catch((error: unknown) => error);
    expect([await run(), await run()]).toEqual(['ok', 'ok']);
    expect(await run()).toMatchObject({
      code: 'PROTECTION_REJECTED',
      reason: 'limited',
      retryAfterMs: 500,
    });
    expect(stats()).toMatchObject({ limited: 1, breaker: { calls: 2 } });
  });

  it('is not charged for work that never begins', async () => {
    const { protection, limiter } = benchWith('few');
    protection.switchBreaker('db', 'forced');
    const codes: unknown[] = [];
    for (let n = 0; n < 5; n++) {
      await protection.run('db', () => 1).catch(({ code }: { code: string }) => codes.push(code));
    }
    expect(new Set(codes)).toEqual(new Set(['BREAKER_OPEN']));
    expect(await limiter.peek({ policy: 'few', key: 'db' })).toMatchObject({ remaining: 2 });
  });

  // Without a bulkhead there is no `maxWait`: a call is held back for as long as it may take.
  it.each([
    ['maxWait', { deadline: 10, bulkhead: { maxWait: 150 } }],
    ['the deadline, without a bulkhead', { deadline: 150 }],
  ])('holds calls back if it is a shaper, within %s', async (_, options) => {
    const { protection, clock } = benchWith('shaped', options);
    const began: number[] = [];
    const t0 = clock.now();
    const run = () =>
      protection
        .run('db', () => void began.push((clock.now() - t0) / 1000))
        .catch((error: unknown) => (error as { reason: string }).reason);
    const all = Promise.all([run(), run(), run()]);
    await clock.advanceAsync(200);
    expect(await all).toEqual([undefined, undefined, 'limited']);
    expect(began).toEqual([0, 100]);
  });

  describe('by an argument', () => {
    const DOCUMENT = {
      sku: {
        id: 'b',
        get odd(): string {
          throw new Error('odd');
        },
      },
    };

    it.each<[string, RateKey, readonly unknown[], string]>([
      ['an argument', { arg: 0 }, ['a'], 'a'],
      ['a number', { arg: 0 }, [42], '42'],
      ['something in an argument', { arg: 1, path: 'sku.id' }, ['a', DOCUMENT], 'b'],
      ['a function', (one: number, two: number) => one + two, [1, 2], '3'],
      ['an argument that is missing', { arg: 3 }, ['a'], '(none)'],
      ['a path that leads nowhere', { arg: 0, path: 'sku.id' }, ['a'], '(none)'],
      ['an object', { arg: 0 }, [DOCUMENT], '(none)'],
      ['an empty text', { arg: 0 }, [''], '(none)'],
      ['something that throws', { arg: 0, path: 'sku.odd' }, [DOCUMENT], '(none)'],
      [
        'a function that throws',
        (one: never) => (one as unknown as () => string)(),
        ['a'],
        '(none)',
      ],
      ['a promise', (() => Promise.resolve('a')) as never, [], '(none)'],
    ])('charges the bucket of %s', async (_, key, args, bucket) => {
      const { protection, limiter } = benchWith({ policy: 'few', key });
      await protection.run('db', () => 'ok', { args });
      expect(await limiter.peek({ policy: 'few', key: bucket })).toMatchObject({ remaining: 1 });
    });

    it('gives back what was taken of that bucket', async () => {
      const { protection, limiter } = benchWith({ policy: 'few', key: { arg: 0 } });
      protection.switchBreaker('db', 'forced');
      await protection.run('db', () => 'ok', { args: ['a'] }).catch(() => undefined);
      expect(await limiter.peek({ policy: 'few', key: 'a' })).toMatchObject({ remaining: 2 });
    });

    it('keeps a function of the code when the configuration has another policy', async () => {
      const { protection, limiter } = benchWith({ policy: 'few', key: (id: string) => `p-${id}` });
      limiter.define({ more: { rate: '9/s' } });
      protection.prepare({ db: { rate: { policy: 'more' } } })();
      await protection.run('db', () => 'ok', { args: ['a'] });
      expect(await limiter.peek({ policy: 'more', key: 'p-a' })).toMatchObject({ remaining: 8 });
      expect(() => protection.prepare({ db: { rate: { policy: 'none' } } })).toThrow(
        'protection.db.rate: unknown policy "none"',
      );
    });
  });

  it('gives tokens back that come when the caller has gone', async () => {
    const { clock, limiter } = benchWith('few');
    const refunds: unknown[] = [];
    let answer!: (decision: unknown) => void;
    const slow = Object.assign(Object.create(limiter) as typeof limiter, {
      tryAcquire: () => new Promise((resolve) => (answer = resolve)),
      refund: (request: unknown) => void refunds.push(request),
    });
    const protection = new Protection(
      { db: { rate: 'few', deadline: 50 } },
      { clock, limiter: slow },
    );
    let hasBegun = false;
    const ended = protection.run('db', () => (hasBegun = true)).catch((error: unknown) => error);
    await clock.advanceAsync(60);
    expect(await ended).toMatchObject({ code: 'DEADLINE_EXCEEDED', started: false });
    answer({ allowed: true, delayMs: 0, retryAfterMs: 0 });
    await settle();
    expect([hasBegun, refunds]).toEqual([false, [{ policy: 'few', key: 'db' }]]);
  });
});
