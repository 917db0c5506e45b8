import { settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

describe('slots', () => {
  it('are given to those who wait in their order, and never to a newcomer before them', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 2, maxQueue: 3 } });
    const calls = Array.from({ length: 6 }, () => bench.call());
    const begun = (): number[] => calls.flatMap((call, n) => (call.hasBegun ? [n] : []));
    await settle();
    expect(begun()).toEqual([0, 1]);
    expect(calls[5]!.error).toMatchObject({ code: 'BULKHEAD_REJECTED', reason: 'full' });
    expect(bench.stats).toMatchObject({ inFlight: 2, waiting: 3, full: 1 });
    await calls[1]!.succeed();
    expect(begun()).toEqual([0, 1, 2]);
    await calls[0]!.fail();
    expect(begun()).toEqual([0, 1, 2, 3]);
  });

  it('are not waited for longer than maxWait', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 1, maxWait: 100 } });
    const first = bench.call();
    const second = bench.call();
    await bench.advance(99);
    expect(second.isDone).toBe(false);
    await bench.advance(3);
    expect(second.error).toMatchObject({ code: 'BULKHEAD_REJECTED', reason: 'waited' });
    expect(bench.stats).toMatchObject({ waiting: 0, waited: 1 });
    await first.succeed();
    expect(second.hasBegun).toBe(false);
    expect(bench.stats.inFlight).toBe(0);
  });

  it('are not kept for who has given up waiting', async () => {
    const bench = new Bench({ bulkhead: { maxInFlight: 1, maxQueue: 2 } });
    const controller = new AbortController();
    const first = bench.call();
    const second = bench.call({ signal: controller.signal });
    const third = bench.call();
    controller.abort('gone');
    await settle();
    expect([second.error, bench.stats.waiting]).toEqual(['gone', 1]);
    await first.succeed();
    expect([second.hasBegun, third.hasBegun]).toEqual([false, true]);
  });

  it('that are held for long are told of once, with what holds them', async () => {
    const bench = new Bench({ bulkhead: { heldWarning: 2000 } });
    const call = bench.call({ label: () => 'SELECT 1' });
    await bench.advance(1999);
    expect(bench.told).toEqual([]);
    await bench.advance(10_000);
    expect(bench.told).toEqual([
      { held: { resource: 'db', ms: expect.any(Number) as number, label: 'SELECT 1' } },
    ]);
    expect(bench.stats.held).toBe(1);
    await call.succeed();
    expect(bench.stats).toMatchObject({ succeeded: 1, inFlight: 0 });
  });

  it('that are held beyond a deadline are told of as well', async () => {
    const bench = new Bench({ deadline: 50, bulkhead: {} });
    const call = bench.call();
    await bench.advance(100);
    expect([call.isDone, bench.stats.held]).toEqual([true, 0]);
    await bench.advance(2000);
    expect(bench.stats).toMatchObject({ held: 1, overdue: 1 });
  });

  it('with a long deadline are told of before it', async () => {
    const bench = new Bench({ deadline: '5s', bulkhead: {} });
    const call = bench.call();
    await bench.advance(2010);
    expect([bench.stats.held, call.isDone]).toEqual([1, false]);
    await bench.advance(3000);
    expect(call.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    expect(bench.stats.held).toBe(1);
  });
});

describe('slow calls', () => {
  const slowCalls = async (bench: Bench, count: number, ms: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const call = bench.call({ label: `SELECT ${n}, a long list of columns` });
      await bench.advance(ms);
      await call.succeed();
    }
  };

  it('are told of by a sample, with a label of limited length', async () => {
    const bench = new Bench({ slow: { threshold: 200, sampleEvery: 3, maxLabel: 8 } });
    await slowCalls(bench, 2, 199);
    expect(bench.stats.slow).toBe(0);
    await slowCalls(bench, 5, 250);
    expect(bench.stats.slow).toBe(5);
    expect(bench.told).toEqual([
      { slow: { resource: 'db', ms: 250, label: 'SELECT 0…', count: 1 } },
      { slow: { resource: 'db', ms: 250, label: 'SELECT 3…', count: 4 } },
    ]);
  });

  it('take longer than the threshold: as long as it is not (V-E26)', async () => {
    const bench = new Bench({
      slow: { threshold: 200 },
      breaker: { minimumCalls: 2, slowRate: 1 },
    });
    await slowCalls(bench, 2, 200);
    expect(bench.stats).toMatchObject({ slow: 0, breaker: { slow: 0, state: 'closed' } });
    await slowCalls(bench, 1, 201);
    expect(bench.stats).toMatchObject({ slow: 1, breaker: { slow: 1 } });
  });

  it('are told of when their deadline has passed, and not again when they end', async () => {
    const bench = new Bench({ preset: 'database', breaker: false });
    const call = bench.call();
    await bench.advance(202);
    expect(bench.stats.slow).toBe(1);
    await call.succeed();
    expect(bench.stats).toMatchObject({ slow: 1, late: 1 });
  });

  it('are measured from when they begin, not from when they wait', async () => {
    const bench = new Bench({ slow: {}, bulkhead: { maxInFlight: 1, maxWait: '1s' } });
    const first = bench.call();
    const second = bench.call();
    await bench.advance(190);
    await first.succeed();
    await bench.advance(190);
    await second.succeed();
    expect(bench.stats.slow).toBe(0);
  });

  it('do not fail by a label that cannot be made', async () => {
    const bench = new Bench({ slow: {} });
    const call = bench.call({
      label: () => {
        throw new Error('no text');
      },
    });
    await bench.advance(300);
    await call.succeed('value');
    expect(call.value).toBe('value');
    expect(bench.told).toMatchObject([{ slow: { label: '(no label: "no text")' } }]);
  });
});
