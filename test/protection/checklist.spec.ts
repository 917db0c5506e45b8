import {
  BulkheadRejectedError,
  DeadlineExceededError,
  Protection,
  type ResourceOptions,
} from 'nestjs-weir';
import { ManualClock, settle } from '../support/manual-clock.js';
import { Bench, type Call } from './bench.js';

const BREAKER = { minimumCalls: 4, openFor: '5s' } as const;

/** A breaker that is open, after four failures. */
async function opened(options: ResourceOptions = {}): Promise<Bench> {
  const bench = new Bench({ ...options, breaker: { ...BREAKER, ...(options.breaker || {}) } });
  await bench.calls(4, 'fail');
  expect(bench.stats.breaker).toMatchObject({ state: 'open', openings: 1 });
  return bench;
}

/** The same, when its time is over: the next call is a probe. */
async function ready(options: ResourceOptions = {}): Promise<Bench> {
  const bench = await opened(options);
  await bench.advance(6000);
  return bench;
}

const begun = (calls: readonly Call[]): number => calls.filter((call) => call.hasBegun).length;

// Each is a fault that breakers are known for.
describe('the way back from an open breaker', () => {
  it('all traffic admitted in half-open: only as many as there are permits, the others fail at once', async () => {
    const bench = await ready({ breaker: { probes: 2 } });
    const calls = Array.from({ length: 100 }, () => bench.call());
    await settle();
    expect(begun(calls)).toBe(2);
    expect(calls.filter((call) => call.isDone)).toHaveLength(98);
    expect(calls[99]!.error).toMatchObject({ code: 'BREAKER_OPEN', resource: 'db' });
    expect((calls[99]!.error as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(0);
  });

  it('probe never settles: its lease runs out, counts as a failure and frees the permit', async () => {
    const bench = await ready({ breaker: { probeLease: '1s' } });
    const hung = bench.call();
    await bench.advance(999);
    expect(await bench.calls(1, 'succeed')).toEqual(['BREAKER_OPEN']);
    await bench.advance(1);
    expect(await bench.calls(1, 'succeed')).toEqual(['BREAKER_OPEN']);
    expect(bench.stats.breaker).toMatchObject({ state: 'open', openings: 2 });
    await bench.advance(6000);
    expect(await bench.calls(3, 'succeed')).toEqual([]);
    expect(bench.stats.breaker).toMatchObject({ state: 'closed' });
    expect([hung.isDone, bench.stats.inFlight]).toEqual([false, 1]);
  });

  it('probe never settles, with a deadline: that is its end', async () => {
    const bench = await ready({ deadline: 200 });
    const hung = bench.call();
    await bench.advance(202);
    expect(hung.error).toBeInstanceOf(DeadlineExceededError);
    expect(bench.stats.breaker).toMatchObject({ state: 'open', openings: 2 });
  });

  it('probe blocked by a later rule: no slot for it is neutral, and its permit is free again', async () => {
    const bench = new Bench({
      bulkhead: { maxInFlight: 2, maxQueue: 0, heldWarning: false },
      breaker: { ...BREAKER, probes: 2 },
    });
    const holder = bench.call();
    await bench.calls(4, 'fail');
    await bench.advance(6000);
    const probe = bench.call();
    expect(await bench.calls(5, 'succeed')).toEqual(Array(5).fill('BULKHEAD_REJECTED'));
    expect(bench.stats.breaker).toMatchObject({ state: 'half-open', openings: 1 });
    await probe.succeed();
    expect(await bench.calls(2, 'succeed')).toEqual([]);
    expect(bench.stats.breaker?.state).toBe('closed');
    await holder.succeed();
  });

  it('probe blocked by a later rule: a probe that waits in vain for a slot is neutral too', async () => {
    const bench = new Bench({
      bulkhead: { maxInFlight: 1, maxWait: 100, heldWarning: false },
      breaker: BREAKER,
    });
    await bench.calls(4, 'fail');
    await bench.advance(6000);
    const controller = new AbortController();
    const gone = bench.call({ signal: controller.signal });
    controller.abort('gone');
    await settle();
    // The work of the first probe goes on and holds the only slot.
    const inVain = bench.call();
    await bench.advance(110);
    expect([gone.error, inVain.error]).toMatchObject(['gone', { reason: 'waited' }]);
    expect(bench.stats.breaker).toMatchObject({ state: 'half-open', openings: 1 });
    await gone.succeed();
    expect(await bench.calls(3, 'succeed')).toEqual([]);
    expect(bench.stats.breaker?.state).toBe('closed');
  });

  it('late results from an older epoch: they release their slot and never count', async () => {
    const bench = new Bench({
      bulkhead: { maxInFlight: 100, heldWarning: false },
      breaker: BREAKER,
    });
    const old = Array.from({ length: 10 }, () => bench.call());
    await bench.calls(4, 'fail');
    await bench.advance(6000);
    await bench.calls(3, 'succeed');
    expect(bench.stats.breaker).toMatchObject({ state: 'closed', calls: 0 });
    for (const call of old) await call.fail();
    expect(bench.stats).toMatchObject({ inFlight: 0, breaker: { state: 'closed', calls: 0 } });
  });

  it('late results from an older epoch: a success of before does not close it either', async () => {
    const bench = new Bench({ breaker: { ...BREAKER, successes: 1 } });
    const old = bench.call();
    await bench.calls(4, 'fail');
    await old.succeed();
    expect(bench.stats.breaker?.state).toBe('open');
    await bench.advance(6000);
    const probe = bench.call();
    expect(bench.stats.breaker?.state).toBe('half-open');
    await probe.succeed();
    expect(bench.stats.breaker?.state).toBe('closed');
  });

  it('concurrent failures cancel the reset timer: there is none, and it opens once', async () => {
    const bench = new Bench({ breaker: BREAKER });
    const calls = Array.from({ length: 20 }, () => bench.call());
    for (const call of calls) {
      await call.fail();
      await bench.advance(100);
    }
    expect(bench.stats.breaker).toMatchObject({ state: 'open', openings: 1 });
    expect(bench.clock.pending).toBe(0);
    // Counted from the failure that opened it, the fourth, and not from the last one.
    await bench.advance(6000 - 1600);
    expect(await bench.calls(1, 'succeed')).toEqual([]);
  });

  it('one lucky probe closes: three in a row are needed, and a failure begins anew', async () => {
    const bench = await ready();
    await bench.calls(2, 'succeed');
    expect(bench.stats.breaker?.state).toBe('half-open');
    await bench.calls(1, 'fail');
    expect(bench.stats.breaker?.state).toBe('open');
    await bench.advance(6000);
    await bench.calls(2, 'succeed');
    expect(bench.stats.breaker?.state).toBe('half-open');
    await bench.calls(1, 'succeed');
    expect(bench.stats.breaker?.state).toBe('closed');
  });

  it('all nodes probe in step: nodes that open together come back at other times', async () => {
    const backAt = async (seed: string): Promise<number> => {
      const bench = new Bench({ breaker: BREAKER }, { seed });
      await bench.calls(4, 'fail');
      const error: unknown = await bench.protection.run('db', () => 1).catch((e: unknown) => e);
      return (error as { retryAfterMs: number }).retryAfterMs;
    };
    const times = await Promise.all(Array.from({ length: 40 }, (_, n) => backAt(`node-${n}`)));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(4000);
    expect(Math.max(...times)).toBeLessThanOrEqual(6000);
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(1000);
    expect(await backAt('node-0')).toBe(times[0]);
  });

  it('synthetic health probe is not the real call: a probe is a call like any other', async () => {
    const bench = await ready();
    const real = bench.call();
    expect([real.hasBegun, bench.stats.breaker?.state]).toEqual([true, 'half-open']);
    await real.succeed('what was asked for');
    expect(real.value).toBe('what was asked for');
  });

  it('budgets add up: a chain of resources has the time of the first, not the sum', async () => {
    const clock = new ManualClock();
    const step = { deadline: '5s' } as const;
    const protection = new Protection({ page: { deadline: 50 }, a: step, b: step }, { clock });
    const never = (): Promise<never> => new Promise(() => {});
    const page = protection.run('page', async (run) => {
      await protection.run('a', never, { parent: run }).catch(() => undefined);
      await protection.run('b', never, { parent: run });
    });
    const ended = page.then(
      () => undefined,
      (error: unknown) => error,
    );
    await clock.advanceAsync(60);
    expect(await ended).toMatchObject({ resource: 'page', deadlineMs: 50 });
    await settle();
    expect(protection.stats()).toMatchObject({ a: { timedOut: 1 }, b: { timedOut: 1, late: 0 } });
  });

  it('pool-wait timeouts opened the breaker: no slot, or none in time, is no failure', async () => {
    const bench = new Bench({
      deadline: '1s',
      bulkhead: { maxInFlight: 1, maxQueue: 20, maxWait: 50 },
      breaker: BREAKER,
    });
    const holder = bench.call();
    const others = Array.from({ length: 30 }, () => bench.call());
    await bench.advance(60);
    expect(others.every(({ error }) => error instanceof BulkheadRejectedError)).toBe(true);
    expect(bench.stats).toMatchObject({ full: 10, waited: 20 });
    expect(bench.stats.breaker).toMatchObject({ state: 'closed', calls: 0 });
    await holder.succeed();
    expect(bench.stats.breaker).toMatchObject({ calls: 1, failures: 0 });
  });

  it('who waited while it opened does not go on to a resource that is down', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 4, maxWait: '1s' }, breaker: BREAKER });
    const running = Array.from({ length: 4 }, () => bench.call());
    const waiting = Array.from({ length: 4 }, () => bench.call());
    for (const call of running) await call.fail();
    expect(begun(waiting)).toBe(3);
    expect(waiting[3]!.error).toMatchObject({ code: 'BREAKER_OPEN' });
    for (const call of waiting.slice(0, 3)) await call.fail();
    expect(bench.stats).toMatchObject({ inFlight: 0, waiting: 0 });
  });
});

describe('what counts as a failure', () => {
  const windowAfter = async (
    error: unknown,
    isFailure?: ResourceOptions['isFailure'],
  ): Promise<unknown> => {
    const bench = new Bench({ breaker: { minimumCalls: 10 }, ...(isFailure && { isFailure }) });
    await bench.call().fail(error);
    const { calls, failures } = bench.stats.breaker!;
    return [calls, failures];
  };

  it('is every error by default', async () => {
    expect(await windowAfter(new Error('down'))).toEqual([1, 1]);
    expect(await windowAfter('down')).toEqual([1, 1]);
  });

  it('is not the abort of a caller, nor the rejection of another resource', async () => {
    const abort = AbortSignal.abort().reason as unknown;
    expect(await windowAfter(abort)).toEqual([0, 0]);
    expect(await windowAfter(new BulkheadRejectedError('cache', 'full', 1, 0))).toEqual([0, 0]);
    const always = (): boolean => true;
    expect(await windowAfter(new BulkheadRejectedError('a', 'full', 1, 0), always)).toEqual([0, 0]);
  });

  it('is what isFailure says, and an error if that fails itself', async () => {
    const notFound = { status: 404 };
    const by = (verdict: boolean | 'neutral') => windowAfter(notFound, () => verdict);
    expect(await by(true)).toEqual([1, 1]);
    expect(await by(false)).toEqual([1, 0]);
    expect(await by('neutral')).toEqual([0, 0]);
    const broken = (): boolean => {
      throw new Error('broken');
    };
    expect(await windowAfter(notFound, broken)).toEqual([1, 1]);
  });

  it('is a deadline of the resource, but not that of a caller in a hurry', async () => {
    const bench = new Bench({ deadline: 200, breaker: { minimumCalls: 10, slowCall: 100 } });
    bench.call({ deadlineMs: 20 });
    await bench.advance(30);
    expect(bench.stats.breaker).toMatchObject({ calls: 0 });
    // Long enough to be slow is long enough to count, or a resource that hangs would never be seen.
    bench.call({ deadlineMs: 120 });
    await bench.advance(130);
    expect(bench.stats.breaker).toMatchObject({ calls: 1, failures: 1, slow: 1 });
    bench.call();
    await bench.advance(210);
    expect(bench.stats.breaker).toMatchObject({ calls: 2, failures: 2 });
  });

  it('is not that a caller has gone', async () => {
    const bench = new Bench({ breaker: { minimumCalls: 1 } });
    const controller = new AbortController();
    const call = bench.call({ signal: controller.signal });
    controller.abort();
    await call.fail();
    expect(bench.stats).toMatchObject({ aborted: 1, failed: 0, breaker: { state: 'closed' } });
  });
});
