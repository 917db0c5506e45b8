import fc from 'fast-check';
import { createRateLimiter } from 'nestjs-weir';
import { refusal } from '../support/errors.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';
import { statesOf, Waiter } from '../support/waiters.js';

const K = { policy: 'p', key: 'k' };
const SHAPER = { algorithm: 'leaky-bucket', mode: 'shaper', rate: 10 } as const;

/** A bucket with nothing in it, and how many timers there are while nobody waits. */
function drained(policy: ConstructorParameters<typeof Bench>[0]) {
  const bench = new Bench(policy);
  while (bench.take().allowed);
  return { bench, clock: bench.clock, idle: bench.clock.pending };
}

describe('acquire', () => {
  it('resolves at once when the tokens are there, without a timer', async () => {
    const bench = new Bench({ rate: 10 });
    const idle = bench.clock.pending;
    const decision = await bench.limiter.acquire({ ...K, cost: 4 });
    expect(decision).toMatchObject({ allowed: true, remaining: 6, policy: 'p' });
    expect(bench.clock.pending).toBe(idle);
  });

  it('V-B16: rate 10, burst 1: the second call is let go after 100 ms', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const waiter = new Waiter(bench);
    await clock.advanceAsync(99);
    expect(waiter.state).toBe('waiting');
    await clock.advanceAsync(1);
    expect(waiter.decision).toMatchObject({
      allowed: true,
      remaining: 0,
      timestampMs: clock.epochMs(clock.now()),
    });
    expect(clock.pending).toBe(idle);
  });

  it('V-B16: aborted while it waits, it rejects with the reason and has taken nothing', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const waiter = new Waiter(bench);
    await clock.advanceAsync(50);
    const reason = new Error('client went away');
    waiter.abort(reason);
    expect(await statesOf(waiter)).toEqual(['rejected']);
    expect(waiter.error).toBe(reason);
    expect(clock.pending).toBe(idle);
    await clock.advanceAsync(50);
    expect(bench.takeMany(2)).toBe(1);
  });

  it('aborted before it began, it takes nothing although there is enough', async () => {
    const bench = new Bench({ rate: 10 });
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(bench.limiter.acquire(K, { signal })).rejects.toThrow('too late');
    expect(bench.peek().remaining).toBe(10);
  });

  it.each([
    ['none given', undefined],
    ['a text', 'stop'],
  ])('rejects with the very reason of the signal: %s', async (_name, reason) => {
    const { bench } = drained({ rate: 10 });
    const controller = new AbortController();
    const waiting = bench.limiter.acquire(K, { signal: controller.signal });
    controller.abort(reason);
    await expect(waiting).rejects.toBe(controller.signal.reason);
  });

  it('an abort after the tokens were had changes nothing', async () => {
    const bench = new Bench({ rate: 10 });
    const waiter = new Waiter(bench);
    await statesOf(waiter);
    waiter.abort();
    expect(await statesOf(waiter)).toEqual(['granted']);
    expect(bench.peek().remaining).toBe(9);
  });

  it('V-D10: more than the bucket ever holds is an error, and not an endless wait', async () => {
    const bench = new Bench({ rate: 10, burst: 100 });
    await expect(bench.limiter.acquire({ ...K, cost: 101 })).rejects.toMatchObject({
      code: 'COST_EXCEEDS_LIMIT',
      field: 'cost',
      value: 101,
    });
  });

  it.each([
    [{ ...K, key: '' }, 'INVALID_ARGUMENT'],
    [{ ...K, cost: 0 }, 'INVALID_ARGUMENT'],
    [{ ...K, policy: 'x' }, 'UNKNOWN_POLICY'],
    [[], 'INVALID_ARGUMENT'],
    [[K, K], 'INVALID_ARGUMENT'],
  ])('rejects, and does not throw, for %j', async (request, code) => {
    await expect(new Bench({ rate: 1 }).limiter.acquire(request)).rejects.toMatchObject({ code });
  });

  it.each([-1, NaN, -Infinity, 'soon', '', '50', null, true, [50], {}])(
    'refuses the timeout %p, and takes nothing',
    async (timeoutMs) => {
      const bench = new Bench({ rate: 1 });
      const options = { timeoutMs: timeoutMs as number };
      await expect(bench.limiter.acquire(K, options)).rejects.toEqual(
        refusal('timeoutMs', timeoutMs),
      );
      expect(bench.peek().remaining).toBe(1);
    },
  );
});

describe('acquire with a timeout', () => {
  it('V-D9: that cannot be met fails at once, without a timer, and says how long it takes', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const error = bench.limiter.acquire(K, { timeoutMs: 50 });
    await expect(error).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
      policy: 'p',
      timeoutMs: 50,
      retryAfterMs: 100,
    });
    expect(clock.pending).toBe(idle);
    expect(bench.peek().remaining).toBe(0);
  });

  it.each([150, 100])('V-D9: of %i ms is met after 100 ms', async (timeoutMs) => {
    const { bench, clock } = drained({ rate: 10, burst: 1 });
    const waiter = new Waiter(bench, {}, { timeoutMs });
    await clock.advanceAsync(100);
    expect(waiter.state).toBe('granted');
  });

  it('of 0 takes what is there, or fails', async () => {
    const bench = new Bench({ rate: 1 });
    const options = { timeoutMs: 0 };
    await expect(bench.limiter.acquire(K, options)).resolves.toMatchObject({ allowed: true });
    await expect(bench.limiter.acquire(K, options)).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
    });
  });

  it.each([Infinity, undefined])('of %p is none', async (timeoutMs) => {
    const { bench, clock, idle } = drained({ rate: 1, period: '1m' });
    const waiters = [1, 2].map(() => new Waiter(bench, {}, { timeoutMs }));
    expect(await statesOf(...waiters)).toEqual(['waiting', 'waiting']);
    // The first waits for its tokens; no timer is set for a deadline that never comes.
    expect(clock.pending).toBe(idle + 1);
    await clock.advanceAsync(59_999);
    expect(await statesOf(...waiters)).toEqual(['waiting', 'waiting']);
    await clock.advanceAsync(1);
    expect(await statesOf(...waiters)).toEqual(['granted', 'waiting']);
    await clock.advanceAsync(60_000);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted']);
    expect(clock.pending).toBe(idle);
  });

  it('fails when somebody else took the tokens it waited for', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const waiter = new Waiter(bench, {}, { timeoutMs: 150 });
    clock.jump(100_000);
    expect(bench.take().allowed).toBe(true);
    await clock.advanceAsync(0);
    expect(waiter.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
    expect(clock.pending).toBe(idle);
  });
});

describe('acquire from a shaper', () => {
  it('lets callers go at the rate', async () => {
    const bench = new Bench(SHAPER);
    const waiters = [1, 2, 3].map(() => new Waiter(bench));
    expect(await statesOf(...waiters)).toEqual(['granted', 'waiting', 'waiting']);
    await bench.clock.advanceAsync(100);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'waiting']);
    await bench.clock.advanceAsync(100);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'granted']);
  });

  it('tells nobody to wait whose wait is over', async () => {
    const bench = new Bench(SHAPER);
    const first = new Waiter(bench);
    expect(bench.take()).toMatchObject({ allowed: true, delayMs: 100, remaining: 8 });
    const held = new Waiter(bench);
    await bench.clock.advanceAsync(199);
    expect(await statesOf(first, held)).toEqual(['granted', 'waiting']);
    await bench.clock.advanceAsync(1);
    expect(first.decision).toMatchObject({ allowed: true, delayMs: 0, remaining: 9 });
    expect(held.decision).toMatchObject({
      allowed: true,
      delayMs: 0,
      retryAfterMs: 0,
      remaining: 7,
    });
  });

  it('tells nobody to wait whose wait for several shapers is over', async () => {
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      policies: { fast: SHAPER, slow: { ...SHAPER, rate: 2 } },
      clock,
    });
    const both = ['fast', 'slow'].map((policy) => ({ policy, key: 'k' }));
    expect(now(limiter.tryAcquire(both)).delayMs).toBe(0);
    const held = limiter.acquire(both);
    await clock.advanceAsync(500);
    await expect(held).resolves.toMatchObject({ allowed: true, delayMs: 0 });
  });

  it('aborted while held back, it leaves its place to the first in line at once', async () => {
    const bench = new Bench({ ...SHAPER, burst: 2 });
    bench.take();
    const [held, next] = [new Waiter(bench), new Waiter(bench)];
    await statesOf(held, next);
    held.abort();
    await bench.clock.advanceAsync(99);
    expect(await statesOf(held, next)).toEqual(['rejected', 'waiting']);
    // Had it heard of the free place only by its own timer, it would now be held back to 200 ms.
    await bench.clock.advanceAsync(1);
    expect(await statesOf(held, next)).toEqual(['rejected', 'granted']);
  });

  it('aborted while held back, it returns its place', async () => {
    const bench = new Bench(SHAPER);
    const idle = bench.clock.pending;
    bench.take();
    const waiter = new Waiter(bench, { cost: 3 });
    expect(await statesOf(waiter)).toEqual(['waiting']);
    expect(bench.peek().remaining).toBe(6);
    waiter.abort();
    expect(await statesOf(waiter)).toEqual(['rejected']);
    expect(bench.peek().remaining).toBe(9);
    expect(bench.clock.pending).toBe(idle);
  });

  it('a delay beyond the timeout fails at once, and takes no place', async () => {
    const bench = new Bench(SHAPER);
    const idle = bench.clock.pending;
    bench.take(3);
    await expect(bench.limiter.acquire(K, { timeoutMs: 299 })).rejects.toMatchObject({
      code: 'ACQUIRE_TIMEOUT',
      retryAfterMs: 300,
    });
    expect(bench.peek().remaining).toBe(7);
    expect(bench.clock.pending).toBe(idle);
  });

  it('waits for a place when all are taken, then for its turn', async () => {
    const bench = new Bench(SHAPER);
    const idle = bench.clock.pending;
    now(bench.limiter.tryAcquire({ ...K, cost: 10 }));
    const waiter = new Waiter(bench);
    await bench.clock.advanceAsync(999);
    expect(waiter.state).toBe('waiting');
    await bench.clock.advanceAsync(1);
    expect(waiter.state).toBe('granted');
    expect(bench.clock.pending).toBe(idle);
  });
});

describe('property', () => {
  const arrivals = fc.array(
    fc.record({ gapMs: fc.nat({ max: 400 }), cost: fc.integer({ min: 1, max: 5 }) }),
    { minLength: 1, maxLength: 15 },
  );

  it('one key is served in the order of arrival, and never faster than burst + rate × Δ', async () => {
    await fc.assert(
      fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 30 }), async (list, rate) => {
        const bench = new Bench({ rate, burst: 5 });
        const idle = bench.clock.pending;
        const granted: { index: number; atMs: number; cost: number }[] = [];
        for (const [index, { gapMs, cost }] of list.entries()) {
          await bench.clock.advanceAsync(gapMs);
          new Waiter(bench, { cost }, {}, ({ decision }) =>
            granted.push({ index, atMs: decision!.timestampMs, cost }),
          );
        }
        await bench.clock.advanceAsync((5000 * list.length) / rate + 1000);
        expect(granted.map(({ index }) => index)).toEqual([...list.keys()]);
        for (let from = 0; from < granted.length; from++) {
          let sum = 0;
          for (const { atMs, cost } of granted.slice(from)) {
            sum += cost;
            const allowed = 5 + (rate * (atMs - granted[from]!.atMs)) / 1000;
            expect(sum).toBeLessThanOrEqual(allowed + 1e-3);
          }
        }
        expect(bench.clock.pending).toBe(idle);
      }),
      { numRuns: 50 },
    );
  });
});
