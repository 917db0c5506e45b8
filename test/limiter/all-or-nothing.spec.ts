import fc from 'fast-check';
import {
  createRateLimiter,
  type PolicyFields,
  type PolicyInput,
  type StoreInput,
} from 'nestjs-weir';
import { errorWith } from '../support/errors.js';
import { now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

/** A limiter whose policies are all asked at once, for the key `k`, unless told otherwise. */
class Several {
  readonly clock = new ManualClock();
  readonly limiter;

  constructor(
    readonly policies: Record<string, PolicyFields>,
    store: StoreInput = 'memory',
  ) {
    this.limiter = createRateLimiter({
      policies: policies as Record<string, PolicyInput>,
      store,
      clock: this.clock,
    });
  }

  requests(cost?: number, key = 'k', names = Object.keys(this.policies)) {
    return names.map((policy) => ({ policy, key, cost }));
  }

  take(cost?: number, key?: string, names?: string[]) {
    return now(this.limiter.tryAcquire(this.requests(cost, key, names)));
  }

  /** Tokens left of each policy. */
  left(key = 'k'): Record<string, number> {
    const peeks = Object.keys(this.policies).map((policy) =>
      now(this.limiter.peek({ policy, key })),
    );
    return Object.fromEntries(peeks.map(({ policy, remaining }) => [policy, remaining]));
  }
}

describe('several policies at once', () => {
  it('are all charged when all allow', () => {
    const all = new Several({ ip: { rate: 10 }, user: { rate: 5 }, route: { rate: 100 } });
    expect(all.take(2).allowed).toBe(true);
    expect(all.left()).toEqual({ ip: 8, user: 3, route: 98 });
  });

  it.each([['first'], ['second'], ['third']])(
    'BUG-Y01: the %s denies, none is charged',
    (tight) => {
      const rateOf = (name: string) => ({ rate: name === tight ? 2 : 10 });
      const names = ['first', 'second', 'third'];
      const all = new Several(Object.fromEntries(names.map((name) => [name, rateOf(name)])));
      all.take(2);
      const before = all.left();
      for (let flood = 0; flood < 20; flood++) {
        expect(all.take(1)).toMatchObject({ allowed: false, policy: tight });
      }
      expect(all.left()).toEqual(before);
    },
  );

  it('are decided alike with and without a policy beside them that only watches', () => {
    // Lists in which one only watches, or of which a bucket is elsewhere, go another way through the limiter.
    const enforced: Record<string, PolicyInput> = {
      bucket: { rate: '5/10s', burst: 8 },
      other: { rate: '7/s', burst: 9 },
      shaper: { algorithm: 'leaky-bucket', rate: '3/s', burst: 4, mode: 'shaper' },
      window: { algorithm: 'sliding-window', rate: '12/10s' },
    };
    const step = fc.record({
      cost: fc.integer({ min: 1, max: 4 }),
      key: fc.constantFrom('a', 'b', 'c'),
      names: fc.subarray(Object.keys(enforced), { minLength: 2 }),
      afterMs: fc.integer({ min: 0, max: 3000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const alone = new Several(enforced);
        const watched = new Several({ ...enforced, watcher: { rate: 4, shadow: true } });
        for (const { cost, key, names, afterMs } of steps) {
          for (const { clock } of [alone, watched]) clock.advance(afterMs);
          const decision = watched.take(cost, key, [...names, 'watcher']);
          expect(alone.take(cost, key, names)).toEqual(decision);
        }
        const { watcher: _, ...counts } = watched.limiter.stats().policies;
        expect(alone.limiter.stats().policies).toEqual(counts);
      }),
      { numRuns: 100 },
    );
  });

  it('say of each what it says when it is asked alone', () => {
    // A bucket of tokens in this process is taken by a function of its own; beside a policy that only watches it is not.
    const step = fc.record({
      cost: fc.integer({ min: 1, max: 8 }),
      key: fc.constantFrom('a', 'b'),
      givesBack: fc.boolean(),
      afterMs: fc.oneof(fc.constant(0), fc.double({ min: 0.001, max: 4000, noNaN: true })),
    });
    const rate = fc.constantFrom('5/10s', '7/s', '100000/s', '3/h');
    fc.assert(
      fc.property(rate, fc.array(step, { maxLength: 60 }), (limit, steps) => {
        const watcher = { rate: 1e9, shadow: true };
        const policies = { bucket: { rate: limit, burst: 8 }, watcher } as const;
        const [alone, listed] = [new Several(policies), new Several(policies)];
        for (const { cost, key, givesBack, afterMs } of steps) {
          for (const { clock } of [alone, listed]) clock.advance(afterMs);
          const request = { policy: 'bucket', key, cost };
          const decision = now(alone.limiter.tryAcquire(request));
          expect(listed.take(cost, key).decisions![0]).toEqual(decision);
          if (!givesBack || !decision.allowed) continue;
          for (const { limiter } of [alone, listed]) void limiter.refund(request);
        }
        const { bucket } = listed.limiter.stats().policies;
        expect(alone.limiter.stats().policies.bucket).toEqual(bucket);
      }),
      { numRuns: 100 },
    );
  });

  it('are each asked for their own cost, by default the policy’s', () => {
    const all = new Several({ a: { rate: 10, cost: 3 }, b: { rate: 10 } });
    now(
      all.limiter.tryAcquire([
        { policy: 'a', key: 'k' },
        { policy: 'b', key: 'k', cost: 4 },
      ]),
    );
    expect(all.left()).toEqual({ a: 7, b: 6 });
  });

  it('deny with the longest wait of those that deny', () => {
    const all = new Several({ fast: { rate: 10, burst: 1 }, slow: { rate: 1 }, wide: { rate: 9 } });
    all.take();
    expect(all.take()).toMatchObject({ allowed: false, policy: 'slow', retryAfterMs: 1000 });
    all.clock.advance(1000);
    expect(all.take().allowed).toBe(true);
  });

  it('allow with the figures of the tightest: the one with the smallest part of its limit left', () => {
    const all = new Several({ wide: { rate: 1000 }, tight: { rate: 4 }, tighter: { rate: 2 } });
    expect(all.take()).toMatchObject({ allowed: true, policy: 'tighter', remaining: 1, limit: 2 });
  });

  it('tell what each that was asked said', () => {
    const all = new Several({ a: { rate: 10 }, b: { rate: 5 } });
    expect(all.take().decisions).toEqual([
      expect.objectContaining({ policy: 'a', allowed: true, remaining: 9 }),
      expect.objectContaining({ policy: 'b', allowed: true, remaining: 4 }),
    ]);
    expect(all.take(1, 'k', ['a']).decisions).toBeUndefined();
  });

  it('tell who denied, also if it was only one', () => {
    const all = new Several({ a: { rate: 10 }, b: { rate: 1 }, c: { rate: 10, burst: 1 } });
    all.take();
    now(all.limiter.refund({ policy: 'c', key: 'k' }));
    const [one, two] = [all.take(), all.take(1, 'k', ['a', 'b'])];
    for (const denied of [one, two]) {
      expect(denied).toMatchObject({ allowed: false, policy: 'b', retryAfterMs: 1000 });
      expect(denied.decisions).toEqual([
        expect.objectContaining({ policy: 'b', allowed: false, retryAfterMs: 1000 }),
      ]);
    }
    all.take(1, 'k', ['c']);
    expect(all.take()).toMatchObject({ allowed: false, policy: 'b', retryAfterMs: 1000 });
    expect(all.take().decisions).toEqual([
      expect.objectContaining({ policy: 'b', allowed: false, retryAfterMs: 1000 }),
      expect.objectContaining({ policy: 'c', allowed: false, retryAfterMs: 100 }),
    ]);
  });

  it('make a request wait for the slowest shaper', () => {
    const shaper = { algorithm: 'leaky-bucket', mode: 'shaper' } as const;
    const all = new Several({ a: { ...shaper, rate: 10 }, b: { ...shaper, rate: 2 } });
    all.take();
    expect(all.take()).toMatchObject({ allowed: true, delayMs: 500 });
  });

  it('may be one policy for several keys', () => {
    const all = new Several({ p: { rate: 1 } });
    const pair = [
      { policy: 'p', key: 'me' },
      { policy: 'p', key: 'you' },
    ];
    expect(now(all.limiter.tryAcquire(pair)).allowed).toBe(true);
    expect(all.left('me')).toEqual({ p: 0 });
    expect(all.left('you')).toEqual({ p: 0 });
  });

  it('refuse the same policy and key twice, and say where', () => {
    const all = new Several({ a: { rate: 10 }, b: { rate: 10 } });
    const twice = () => all.take(1, 'k', ['a', 'b', 'a']);
    expect(twice).toThrow(errorWith({ code: 'INVALID_ARGUMENT', field: 'request[2]' }));
    expect(twice).toThrow('request[0]');
    expect(all.left()).toEqual({ a: 10, b: 10 });
  });

  it('refuse an empty list', () => {
    const all = new Several({ a: { rate: 10 } });
    expect(() => all.limiter.tryAcquire([])).toThrow(
      errorWith({ code: 'INVALID_ARGUMENT', field: 'request' }),
    );
  });

  it('charge nothing when one of the requests is an error', () => {
    const all = new Several({ a: { rate: 10 }, b: { rate: 2 } });
    expect(() => all.take(3)).toThrow(errorWith({ code: 'COST_EXCEEDS_LIMIT' }));
    expect(() => all.take(1, 'k', ['a', 'x'])).toThrow(errorWith({ code: 'UNKNOWN_POLICY' }));
    expect(all.left()).toEqual({ a: 10, b: 2 });
  });
});

describe('several policies for keys that share overflow buckets', () => {
  const FULL = { type: 'memory', maxKeys: 1 } as const;

  it('charge none when the shared bucket of one denies', () => {
    const all = new Several({ tight: { rate: 1 }, wide: { rate: 10 } }, FULL);
    now(all.limiter.tryAcquire({ policy: 'wide', key: 'the only key with a bucket' }));
    expect(all.take().allowed).toBe(true);
    for (let flood = 0; flood < 20; flood++) {
      expect(all.take()).toMatchObject({ allowed: false, policy: 'tight' });
    }
    expect(now(all.limiter.allowN('wide', 'k', 9))).toBe(true);
  });

  it('charge none when two keys of the request want the last token of the same bucket', () => {
    const { limiter } = new Several({ p: { rate: 1 } }, FULL);
    const take = (key: string) => now(limiter.allow('p', key));
    take('the only key with a bucket');
    take('a');
    let b = 0;
    while (take(`b${b}`)) now(limiter.refund({ policy: 'p', key: `b${b++}` }));
    now(limiter.refund({ policy: 'p', key: 'a' }));
    const both = [
      { policy: 'p', key: 'a' },
      { policy: 'p', key: `b${b}` },
    ];
    const denied = now(limiter.tryAcquire(both));
    expect(denied).toMatchObject({ allowed: false, policy: 'p' });
    expect(denied.decisions).toEqual([expect.objectContaining({ policy: 'p', allowed: false })]);
    expect(take('a')).toBe(true);
  });
});

describe('property', () => {
  const policies = fc.record({
    algorithm: fc.constantFrom('token-bucket', 'leaky-bucket', 'sliding-window'),
    rate: fc.integer({ min: 3, max: 20 }),
  });
  const steps = fc.record({ cost: fc.integer({ min: 1, max: 3 }), subset: fc.integer({ min: 1 }) });

  it('while time stands still, each policy has lost the cost of the allowed, and no more', () => {
    fc.assert(
      fc.property(
        fc.array(policies, { minLength: 2, maxLength: 3 }),
        fc.array(steps, { maxLength: 40 }),
        fc.array(steps, { maxLength: 40 }),
        fc.integer({ min: 0, max: 3_000_000 }),
        (list, history, more, micros) => {
          const all = new Several(Object.fromEntries(list.map((one, i) => [`p${i}`, one])));
          const names = Object.keys(all.policies);
          for (const { cost } of history) all.take(cost);
          all.clock.jump(micros);
          const left = all.left();
          for (const { cost, subset } of more) {
            const some = names.filter((_, i) => (subset >> i) & 1);
            const asked = some.length > 0 ? some : names;
            if (!all.take(cost, 'k', asked).allowed) continue;
            for (const name of asked) left[name]! -= cost;
          }
          expect(all.left()).toEqual(left);
        },
      ),
    );
  });
});
