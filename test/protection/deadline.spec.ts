import { DeadlineExceededError, RateLimitError } from 'nestjs-weir';
import { settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

describe('a deadline', () => {
  it('answers the caller in time, aborts the work, and leaves the slot with it', async () => {
    const bench = new Bench({ deadline: 50, bulkhead: { maxInFlight: 1, maxQueue: 0 } });
    const call = bench.call();
    const { signal } = call.run!;
    await bench.advance(49);
    expect([call.isDone, signal.aborted]).toEqual([false, false]);
    await bench.advance(3);
    expect(call.error).toBeInstanceOf(DeadlineExceededError);
    expect(call.error).toBeInstanceOf(RateLimitError);
    expect(call.error).toMatchObject({ resource: 'db', deadlineMs: 50, started: true });
    expect(signal.reason).toBe(call.error);
    expect(bench.stats).toMatchObject({ inFlight: 1, overdue: 1, timedOut: 1 });
    const next = bench.call();
    await settle();
    expect(next.error).toMatchObject({ code: 'BULKHEAD_REJECTED', reason: 'full' });

    await call.succeed();
    expect(bench.stats).toMatchObject({ inFlight: 0, overdue: 0, late: 1, succeeded: 0 });
  });

  it('lets work fail late without anybody hearing of it', async () => {
    const bench = new Bench({ deadline: 50 });
    const call = bench.call();
    await bench.advance(60);
    await call.fail();
    expect(bench.stats).toMatchObject({ late: 1, failed: 0, inFlight: 0 });
  });

  it('makes a signal only for those who ask, and an aborted one for those who ask late', async () => {
    const bench = new Bench({ deadline: 50 });
    const call = bench.call();
    await bench.advance(60);
    expect(call.run!.signal.aborted).toBe(true);
    expect(call.run!.signal.reason).toBe(call.error);
    expect(call.run!.signal).toBe(call.run!.signal);
  });

  it('says how much is left, never less than nothing', async () => {
    const bench = new Bench({ deadline: 50 });
    const call = bench.call();
    expect(call.run!.remainingMs).toBe(50);
    await bench.advance(20);
    expect(call.run!.remainingMs).toBe(30);
    await bench.advance(100);
    expect(call.run!.remainingMs).toBe(0);
    expect(new Bench({}).call().run!.remainingMs).toBe(Infinity);
  });

  // BUG-E15 is overruled by the design: the wait comes before the deadline, and has a bound of its own.
  it('begins when the work does: the wait for a slot is no part of it', async () => {
    const bench = new Bench({ deadline: 50, bulkhead: { maxInFlight: 1, maxWait: 100 } });
    const first = bench.call();
    await bench.advance(10);
    const second = bench.call();
    await bench.advance(38);
    await first.succeed();
    await bench.advance(40);
    expect([second.isDone, second.run!.remainingMs]).toEqual([false, 10]);
    await bench.advance(12);
    expect(second.error).toMatchObject({
      message: 'resource "db": no answer within 50 ms',
      started: true,
    });
  });

  it.each([
    { preset: 'redis', maxInFlight: 500, maxWaitMs: 100, deadlineMs: 50 },
    { preset: 'database', maxInFlight: 200, maxWaitMs: 1000, deadlineMs: 200 },
  ] as const)('$preset: waits and runs as the preset says (V-E21)', async (figures) => {
    const { preset, maxInFlight, maxWaitMs, deadlineMs } = figures;
    const bench = new Bench({ preset, breaker: false, deadline: '1m' });
    const all = Array.from({ length: maxInFlight }, () => bench.call());
    bench.protection.prepare({ db: { preset, breaker: false } })();
    const [inTime, tooLate] = [bench.call(), bench.call()];
    await bench.advance(maxWaitMs - 1);
    await all[0]!.succeed();
    expect([inTime.hasBegun, inTime.run!.remainingMs]).toEqual([true, deadlineMs]);
    await bench.advance(2);
    await all[1]!.succeed();
    expect(tooLate.hasBegun).toBe(false);
    expect(tooLate.error).toMatchObject({ code: 'BULKHEAD_REJECTED', reason: 'waited' });
    await bench.advance(deadlineMs - 3);
    expect(inTime.isDone).toBe(false);
    await bench.advance(4);
    expect(inTime.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', started: true, deadlineMs });
  });

  it('of a caller is for all of it, waiting included', async () => {
    const bench = new Bench({
      deadline: 50,
      bulkhead: { maxInFlight: 1, maxQueue: 2, maxWait: 100 },
    });
    const first = bench.call();
    const second = bench.call({ deadlineMs: 60 });
    const third = bench.call({ deadlineMs: 60 });
    await bench.advance(40);
    await first.succeed();
    expect(second.run!.remainingMs).toBe(20);
    await bench.advance(22);
    expect(second.error).toMatchObject({ deadlineMs: 60, started: true });
    expect(third.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', started: false });
    expect(bench.stats).toMatchObject({ timedOut: 2, waited: 0 });
  });

  it('leaves no timer behind', async () => {
    const bench = new Bench({ deadline: 50, bulkhead: {} });
    const call = bench.call();
    await call.succeed();
    await bench.advance(200);
    expect(bench.clock.pending).toBe(0);
  });

  describe('of a caller', () => {
    it('holds if it is shorter, and only then', async () => {
      const bench = new Bench({ deadline: 50 });
      expect(bench.call({ deadlineMs: 20 }).run!.remainingMs).toBe(20);
      expect(bench.call({ deadlineMs: 200 }).run!.remainingMs).toBe(50);
      expect(new Bench({}).call({ deadlineMs: 20 }).run!.remainingMs).toBe(20);
      const wrong = bench.call({ deadlineMs: 0 });
      await settle();
      expect(wrong.error).toMatchObject({ code: 'INVALID_ARGUMENT', field: 'run.deadlineMs' });
    });

    it('is what is left of the run that this one is part of', async () => {
      const bench = new Bench({ deadline: 50 });
      const parent = bench.call();
      await bench.advance(30);
      const child = bench.call({ parent: parent.run! });
      const grandchild = bench.call({ parent: child.run! });
      const stranger = { remainingMs: 5, signal: new AbortController().signal };
      expect(child.run!.remainingMs).toBe(20);
      expect(grandchild.run!.remainingMs).toBe(20);
      expect(bench.call({ parent: stranger }).run!.remainingMs).toBe(5);
      await bench.advance(30);
      expect([parent.isDone, child.isDone, grandchild.isDone]).toEqual([true, true, true]);
      const tooLate = bench.call({ parent: parent.run! });
      await settle();
      expect(tooLate.error).toMatchObject({ code: 'DEADLINE_EXCEEDED', started: false });
    });
  });
});

describe("a caller's signal", () => {
  it('ends the wait at once, with its own reason, and is passed on to the work', async () => {
    const bench = new Bench({ deadline: 50 });
    const controller = new AbortController();
    const call = bench.call({ signal: controller.signal });
    const { signal } = call.run!;
    controller.abort('gone');
    await settle();
    expect([call.error, signal.reason]).toEqual(['gone', 'gone']);
    expect(bench.stats).toMatchObject({ aborted: 1, overdue: 1 });
    await call.succeed();
    expect(bench.stats).toMatchObject({ overdue: 0, late: 1 });
  });

  it('holds without a deadline, and for runs that are part of this one', async () => {
    const bench = new Bench({});
    const controller = new AbortController();
    const own = new AbortController();
    const parent = bench.call({ signal: controller.signal });
    const child = bench.call({ parent: parent.run! });
    const both = bench.call({ parent: parent.run!, signal: own.signal });
    const other = bench.call({ parent: parent.run!, signal: new AbortController().signal });
    own.abort('own');
    await settle();
    expect([both.error, child.isDone]).toEqual(['own', false]);
    controller.abort('gone');
    await settle();
    expect([parent.error, child.error, other.error]).toEqual(['gone', 'gone', 'gone']);
  });

  it('that is aborted already keeps the work from beginning', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 1 } });
    const call = bench.call({ signal: AbortSignal.abort('gone') });
    await settle();
    expect([call.error, call.hasBegun]).toEqual(['gone', false]);
    expect(bench.stats).toMatchObject({ aborted: 1, inFlight: 0 });
  });

  it('keeps no listener after the call', async () => {
    const bench = new Bench({});
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const [add, remove] = [signal.addEventListener, signal.removeEventListener];
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove.apply(signal, args);
    };
    const call = bench.call({ signal });
    expect(listeners).toBe(1);
    await call.succeed();
    expect(listeners).toBe(0);
  });
});

describe('work', () => {
  it.each([[{}], [{ deadline: 50 }]])('that throws at once rejects, with %j', async (options) => {
    const bench = new Bench({ ...options, bulkhead: { maxInFlight: 1 } });
    const thrown = new Error('at once');
    const work = (): Promise<void> => {
      throw thrown;
    };
    await expect(bench.protection.run('db', work)).rejects.toBe(thrown);
    expect(bench.stats).toMatchObject({ failed: 1, inFlight: 0 });
  });

  it.each([[{}], [{ deadline: 50 }]])(
    'may give a value, a promise or anything that has a then, with %j',
    async (options) => {
      const { protection } = new Bench(options);
      const thenable: PromiseLike<number> = {
        then: (resolve) => Promise.resolve(3).then(resolve),
      };
      expect(await protection.run('db', () => 1)).toBe(1);
      expect(await protection.run('db', async () => 2)).toBe(2);
      expect(await protection.run('db', () => thenable)).toBe(3);
    },
  );

  it('of a resource that there is not is an error that names those there are', async () => {
    const { protection } = new Bench({});
    await expect(protection.run('cache', () => 1)).rejects.toMatchObject({
      code: 'UNKNOWN_RESOURCE',
      message: 'unknown resource "cache"; there is "db"',
    });
  });
});
