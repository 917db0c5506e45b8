import {
  createRateLimiter,
  InvalidArgumentError,
  type PolicyRequest,
  type PolicyInput,
} from 'nestjs-weir';
import { errorWith, refusal } from '../support/errors.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

function limiterOf(policies: Record<string, PolicyInput>) {
  const clock = new ManualClock();
  const limiter = createRateLimiter({ policies, clock });
  const take = (policy: string, key: string, more: Partial<PolicyRequest> = {}) =>
    now(limiter.tryAcquire({ policy, key, ...more }));
  return { clock, limiter, take };
}

describe('a decision', () => {
  it('says all there is to say when it is yes', () => {
    const bench = new Bench({ rate: 10, burst: 5 });
    expect(bench.take(2)).toEqual({
      allowed: true,
      remaining: 3,
      limit: 5,
      delayMs: 0,
      retryAfterMs: 0,
      resetMs: 200,
      timestampMs: bench.clock.epochMs(bench.clock.now()),
      policy: 'p',
      tier: 'policy',
      source: 'local',
    });
  });

  it('says all there is to say when it is no', () => {
    const bench = new Bench({ rate: 10, burst: 5 });
    bench.take(4);
    expect(bench.take(3)).toEqual({
      allowed: false,
      remaining: 1,
      limit: 5,
      delayMs: 0,
      retryAfterMs: 200,
      resetMs: 400,
      timestampMs: bench.clock.epochMs(bench.clock.now()),
      policy: 'p',
      tier: 'policy',
      source: 'local',
    });
  });

  it('rounds what is left down, and waits up', () => {
    const bench = new Bench({ rate: 3, burst: 5 });
    bench.take(5);
    bench.clock.advance(500);
    expect(bench.peek(2)).toMatchObject({ allowed: false, remaining: 1, retryAfterMs: 167 });
  });

  it('is the caller’s to keep: the next one does not change it', () => {
    const bench = new Bench({ rate: 10, burst: 5 });
    const first = bench.take();
    const copy = { ...first };
    bench.take(4);
    bench.take();
    expect(first).toEqual(copy);
  });

  it('comes at once from memory, and so does every other answer', () => {
    const { limiter } = limiterOf({ p: { rate: 10 }, node: { rate: 10, scope: 'node' } });
    const request = { policy: 'p', key: 'k' };
    const answers = [
      limiter.tryAcquire(request),
      limiter.tryAcquire([request, { policy: 'node', key: 'k' }]),
      limiter.allow('node', 'k'),
      limiter.allowN('p', 'k', 2),
      limiter.peek(request),
      limiter.refund(request),
      limiter.reset(request),
    ];
    expect(answers.some((answer) => answer instanceof Promise)).toBe(false);
  });
});

describe('a request', () => {
  it('takes what the policy costs unless it says otherwise', () => {
    const bench = new Bench({ rate: 10, cost: 3 });
    expect(now(bench.limiter.tryAcquire({ policy: 'p', key: 'k' })).remaining).toBe(7);
    expect(now(bench.limiter.allow('p', 'k'))).toBe(true);
    expect(bench.take(1).remaining).toBe(3);
  });

  it('as yes or no: allow takes the policy’s cost, allowN what it is told', () => {
    const { limiter } = limiterOf({ p: { rate: 5 } });
    expect(now(limiter.allowN('p', 'k', 4))).toBe(true);
    expect(now(limiter.allowN('p', 'k', 2))).toBe(false);
    expect(now(limiter.allow('p', 'k'))).toBe(true);
    expect(now(limiter.allow('p', 'k'))).toBe(false);
  });

  it.each([0, -1, 1.5, NaN, -Infinity, '2' as never, null as never])(
    'V-B14: with the cost %p is an error',
    (cost) => {
      const bench = new Bench({ rate: 5 });
      const refused = errorWith({ code: 'INVALID_ARGUMENT', field: 'cost' });
      expect(() => bench.take(cost)).toThrow(refused);
      expect(() => bench.limiter.allowN('p', 'k', cost)).toThrow(refused);
      expect(() => bench.peek(cost)).toThrow(refused);
      expect(() => bench.limiter.refund({ policy: 'p', key: 'k', cost })).toThrow(refused);
      expect(bench.peek().remaining).toBe(5);
    },
  );

  it.each([6, 5.5, Infinity])('for %p of 5 is an error that says it never works', (cost) => {
    const bench = new Bench({ rate: 5 });
    expect(() => bench.take(cost)).toThrow(
      errorWith({
        code: 'COST_EXCEEDS_LIMIT',
        field: 'cost',
        value: cost,
        limit: 5,
        policy: 'p',
      }),
    );
  });

  it.each(['', undefined, null, 5, {}, ['k']])('V-B14: with the key %p is an error', (bad) => {
    const { limiter } = limiterOf({ p: { rate: 5 } });
    const request = { policy: 'p', key: bad as string };
    const refused = refusal('key', bad);
    expect(() => limiter.tryAcquire(request)).toThrow(refused);
    expect(() => limiter.tryAcquire([request])).toThrow(refused);
    expect(() => limiter.allow('p', bad as string)).toThrow(refused);
    expect(() => limiter.peek(request)).toThrow(refused);
    expect(() => limiter.refund(request)).toThrow(refused);
    expect(() => limiter.reset(request)).toThrow(refused);
  });

  it('for a policy that is not there is an error that lists those that are', () => {
    const { limiter } = limiterOf({ login: { rate: 5 }, search: { rate: 5 } });
    const unknown = (value: unknown) =>
      errorWith({ code: 'UNKNOWN_POLICY', field: 'policy', value });
    expect(() => limiter.allow('logn', 'k')).toThrow(unknown('logn'));
    expect(() => limiter.allow('logn', 'k')).toThrow(InvalidArgumentError);
    expect(() => limiter.allow('logn', 'k')).toThrow('"login", "search"');
    expect(() => limiter.allow('constructor', 'k')).toThrow(unknown('constructor'));
    expect(() => limiter.allow(undefined as never, 'k')).toThrow(unknown(undefined));
    const request = { policy: 'logn', key: 'k' };
    expect(() => limiter.tryAcquire([request])).toThrow(unknown('logn'));
    expect(() => limiter.peek(request)).toThrow(unknown('logn'));
    expect(() => limiter.refund(request)).toThrow(unknown('logn'));
    expect(() => limiter.reset(request)).toThrow(unknown('logn'));
  });

  it('does not share with other keys, however long or alike', () => {
    const { take } = limiterOf({ p: { rate: 1 } });
    const long = 'x'.repeat(300);
    const keys = ['k', 'K', 'k ', 'k:k', long, `${long}y`, '__proto__', '#', '##'];
    for (const key of keys) expect(take('p', key).allowed).toBe(true);
    for (const key of keys) expect(take('p', key).allowed).toBe(false);
  });

  it('does not share with the same key of another policy', () => {
    const { take } = limiterOf({ a: { rate: 1 }, b: { rate: 1 } });
    expect(take('a', 'k').allowed).toBe(true);
    expect(take('b', 'k').allowed).toBe(true);
    expect(take('a', 'k').allowed).toBe(false);
  });
});

describe('tiers', () => {
  it.each([
    ['E-08, V-E7: user', 'normal', 10, 'vip', 50],
    ['E-09, V-E8: merchant', 'normal', 100, 'S', 1000],
  ])('%s %s %i/s, %s %i/s', (_name, base, rate, better, betterRate) => {
    const tiers = { [base]: { rate }, [better]: { rate: betterRate } };
    const bench = new Bench({ tiers, defaultTier: base });
    const steady = { [base]: 0, [better]: 0, unknown: 0 };
    for (const tier of Object.keys(steady)) while (bench.take(1, { tier }).allowed);
    for (let ms = 0; ms < 1000; ms++) {
      bench.clock.advance(1);
      for (const tier of [base, better]) while (bench.take(1, { tier }).allowed) steady[tier]!++;
    }
    expect(steady).toMatchObject({ [base]: rate, [better]: betterRate });
  });

  it('a request that names no tier, or one that is not there, has the default tier', () => {
    const tiers = { normal: { rate: 10 }, vip: { rate: 50 } };
    const bench = new Bench({ tiers, defaultTier: 'normal' });
    expect(bench.take(1).limit).toBe(10);
    expect(bench.take(1, { tier: 'gold' })).toMatchObject({ limit: 10, remaining: 8 });
    expect(bench.take(1, { tier: 'normal' })).toMatchObject({ limit: 10, remaining: 7 });
    expect(bench.take(1, { tier: 'vip' })).toMatchObject({ limit: 50, remaining: 49 });
    expect(bench.take(1, { tier: '__proto__' })).toMatchObject({ limit: 10, remaining: 6 });
  });

  it('a policy’s own figures are its default tier', () => {
    const bench = new Bench({ rate: 10, tiers: { vip: { rate: 50 } } });
    expect(bench.take(1, { tier: 'gold' }).limit).toBe(10);
  });

  it('a cost is measured by the tier', () => {
    const bench = new Bench({ rate: 10, tiers: { vip: { rate: 50 } } });
    expect(bench.take(50, { tier: 'vip' }).allowed).toBe(true);
    expect(() => bench.take(50)).toThrow(errorWith({ code: 'COST_EXCEEDS_LIMIT', limit: 10 }));
  });
});
