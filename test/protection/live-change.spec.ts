import { createRateLimiter, Protection } from 'nestjs-weir';
import { ManualClock, settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

describe('a change of resources', () => {
  it('is checked as a whole, and nothing of a faulty one is put into force', () => {
    const { protection } = new Bench({ deadline: 50 });
    const faulty = { db: { deadline: 80 }, cache: { deadline: -1 } };
    expect(() => protection.prepare(faulty)).toThrow('protection.cache.deadline');
    expect(Object.keys(protection.stats())).toEqual(['db']);
    expect(() => protection.prepare({ db: 5 } as never)).toThrow('protection.db');
    expect(() => protection.prepare({})).toThrow('protection.db: expected to stay');
  });

  it('is in force when it is committed, and not before', () => {
    const bench = new Bench({ deadline: 50 });
    const commit = bench.protection.prepare({ db: { deadline: 80 }, cache: 'redis' });
    expect(bench.call().run!.remainingMs).toBe(50);
    expect(bench.protection.has('cache')).toBe(false);
    commit();
    expect(bench.call().run!.remainingMs).toBe(80);
    expect(bench.protection.has('cache')).toBe(true);
    bench.protection.prepare({ db: { deadline: 80 } })();
    expect(bench.protection.has('cache')).toBe(false);
  });

  it('leaves what has not changed as it is', async () => {
    const breaker = { minimumCalls: 4 };
    const bench = new Bench({ breaker, bulkhead: { maxInFlight: 2 } });
    await bench.calls(4, 'fail');
    bench.protection.prepare({ db: { breaker, bulkhead: { maxInFlight: 5 } }, more: {} })();
    expect(bench.stats).toMatchObject({ failed: 4, breaker: { state: 'open' } });
    bench.protection.prepare({ db: { breaker: { minimumCalls: 5 } } })();
    expect(bench.stats).toMatchObject({ failed: 4, breaker: { state: 'closed' } });
  });

  it('lets those in who wait, as far as there is room now', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 1, maxQueue: 9, maxWait: '1s' } });
    const calls = Array.from({ length: 5 }, () => bench.call());
    const begun = (): number => calls.filter((call) => call.hasBegun).length;
    bench.protection.prepare({ db: { bulkhead: { maxInFlight: 3, maxQueue: 9 } } })();
    expect(begun()).toBe(3);
    bench.protection.prepare({ db: {} })();
    expect(begun()).toBe(5);
    bench.protection.prepare({ db: { bulkhead: { maxInFlight: 1 } } })();
    for (const call of calls) await call.succeed();
    expect(bench.stats).toMatchObject({ inFlight: 0, waiting: 0, succeeded: 5 });
  });

  it('with less room waits for what is on its way', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 3 } });
    const calls = [bench.call(), bench.call(), bench.call()];
    bench.protection.prepare({ db: { bulkhead: { maxInFlight: 1, maxQueue: 5 } } })();
    const next = bench.call();
    await calls[0]!.succeed();
    await calls[1]!.succeed();
    expect(next.hasBegun).toBe(false);
    await calls[2]!.succeed();
    expect(next.hasBegun).toBe(true);
  });

  it('keeps the functions of the code, which no document can hold', async () => {
    const bench = new Bench({ breaker: { minimumCalls: 9 }, isFailure: () => 'neutral' });
    bench.protection.prepare({ db: { breaker: { minimumCalls: 8 } } })();
    await bench.calls(3, 'fail');
    expect(bench.stats).toMatchObject({ neutral: 3, breaker: { calls: 0 } });
  });

  it('knows the policies that rates name', () => {
    const limiter = createRateLimiter({
      clock: new ManualClock(),
      policies: { reads: { rate: '1/s' } },
    });
    const protection = new Protection({ db: {} }, { limiter });
    expect(() => protection.prepare({ db: { rate: 'writes' } })).toThrow(
      'protection.db.rate: unknown policy "writes"; the limiter has "reads"',
    );
    protection.prepare({ db: { rate: 'reads' } })();
    expect(() => protection.checkRates()).not.toThrow();
  });

  it('counts on the policies that there will be, if it is told of them', () => {
    const limiter = createRateLimiter({
      clock: new ManualClock(),
      policies: { reads: { rate: 1 } },
    });
    const protection = new Protection({ db: {} }, { limiter });
    protection.prepare({ db: { rate: 'writes' } }, () => ['writes'])();
    expect(() => protection.prepare({ db: { rate: 'reads' } }, () => ['writes'])).toThrow(
      'protection.db.rate: unknown policy "reads"; the limiter has "writes"',
    );
  });
});

describe('what decorators declare', () => {
  it('is the ground on which options are laid, also when they change', async () => {
    const bench = new Bench({ deadline: 80 });
    bench.protection.declare('db', { deadline: 50, bulkhead: { maxInFlight: 1, maxQueue: 0 } });
    expect(bench.call().run!.remainingMs).toBe(80);
    const refused = bench.call();
    await settle();
    expect(refused.error).toMatchObject({ code: 'BULKHEAD_REJECTED' });
    bench.protection.prepare({ db: { bulkhead: { maxInFlight: 2 } } })();
    expect(bench.call().run!.remainingMs).toBe(50);
  });

  it('stays when a document says nothing of it', () => {
    const { protection } = new Bench({});
    protection.declare('mail', 'redis');
    protection.prepare({ db: {} })();
    expect(protection.has('mail')).toBe(true);
  });

  it('may be said twice, but not in two ways', () => {
    const { protection } = new Bench({});
    protection.declare('mail', { deadline: 50 });
    protection.declare('mail', { deadline: 50 });
    expect(() => protection.declare('mail', { deadline: 60 })).toThrow(`@Protect('mail')`);
  });
});
