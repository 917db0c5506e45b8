import {
  ABSENT,
  LocalCache,
  Protection,
  TOO_BIG,
  type Failure,
  type ResourcesInput,
  type RunOptions,
  type Step,
} from 'nestjs-weir';
import { ManualClock, settle } from '../support/manual-clock.js';

class NotFound extends Error {}

const RESOURCES: ResourcesInput = {
  cache: { deadline: 50, maxValueBytes: 20 },
  db: {
    deadline: 200,
    bulkhead: { maxInFlight: 1, maxQueue: 0 },
    breaker: { minimumCalls: 3 },
    isFailure: (error) => !(error instanceof NotFound),
  },
};

function stand() {
  const clock = new ManualClock();
  const protection = new Protection(RESOURCES, { clock });
  const hidden: string[] = [];
  protection.on('fallback', ({ resource, error }) => hidden.push(`${resource} ${String(error)}`));
  return { clock, protection, hidden };
}

const never = (): Promise<never> => new Promise(() => {});
const failing = (error = new Error('down')) => {
  return (): Promise<never> => Promise.reject(error);
};

describe('a fallback', () => {
  const instead = ({ resource, error }: Failure): string => `${resource}: ${String(error)}`;
  const run = (protection: Protection, work: () => unknown, options: RunOptions = {}) =>
    protection.run('db', work, { fallback: instead, ...options });

  it('answers for work that fails, is too slow, or is not let through', async () => {
    const { protection, clock, hidden } = stand();
    expect(await run(protection, () => 'fine')).toBe('fine');
    expect(await run(protection, failing())).toBe('db: Error: down');
    const slow = run(protection, never);
    const full = run(protection, () => 'no slot');
    expect(await full).toContain('db: BulkheadRejectedError');
    await clock.advanceAsync(202);
    expect(await slow).toContain('no answer within 200 ms');
    expect(await run(protection, () => 'open')).toContain('its breaker is open');
    expect(hidden).toHaveLength(4);
    expect(protection.stats().db).toMatchObject({ fallbacks: 4, succeeded: 1 });
  });

  it('is not asked where the error is an answer, and not where the program is wrong', async () => {
    const { protection, hidden } = stand();
    await expect(run(protection, failing(new NotFound('no product 1')))).rejects.toThrow(NotFound);
    await expect(run(protection, () => 1, { deadlineMs: -1 })).rejects.toThrow('run.deadlineMs');
    await expect(run(protection, () => 1, { fallback: 'x' as never })).rejects.toThrow(
      'a function',
    );
    await expect(protection.run('no', () => 1, { fallback: instead })).rejects.toThrow('unknown');
    expect(hidden).toEqual([]);
  });

  it('is not asked for a caller that has gone, or whose time is over', async () => {
    const { protection, hidden } = stand();
    const controller = new AbortController();
    const gone = run(protection, never, { signal: controller.signal });
    controller.abort('gone');
    await expect(gone).rejects.toBe('gone');
    const late = stand();
    const hurried = run(late.protection, never, { deadlineMs: 20 }).catch(String);
    await late.clock.advanceAsync(22);
    expect(await hurried).toContain('no answer within 20 ms');
    expect([hidden, late.hidden]).toEqual([[], []]);
  });

  it('has what is left of the caller’s time, and is cut off then', async () => {
    const { protection, clock } = stand();
    const left: number[] = [];
    const fallback = ({ remainingMs, signal }: Failure): Promise<never> => {
      left.push(remainingMs);
      signal.addEventListener('abort', () => left.push(-1));
      return never();
    };
    const answer = run(protection, never, { deadlineMs: 300, fallback }).catch(String);
    await clock.advanceAsync(202);
    expect(left).toEqual([expect.closeTo(100, -1)]);
    await clock.advanceAsync(102);
    expect(await answer).toContain('no answer within');
    expect(left.at(-1)).toBe(-1);
  });

  it('that fails itself: its error is the one that callers get', async () => {
    const { protection } = stand();
    const fallback = (): never => {
      throw new NotFound('not even here');
    };
    await expect(run(protection, failing(), { fallback })).rejects.toThrow('not even here');
  });
});

describe('firstOf', () => {
  /** A step with a given answer, which remembers the values it had to keep. */
  const place = (resource: string | undefined, find: () => unknown) => {
    const kept: unknown[] = [];
    const state = { asked: 0 };
    const step: Step<string> = {
      ...(resource !== undefined && { resource }),
      run: () => {
        state.asked++;
        return find() as string;
      },
      keep: (value) => void kept.push(value),
    };
    return { step, kept, state };
  };
  const steps = (...places: { readonly step: Step<string> }[]) => places.map(({ step }) => step);

  it('asks one after the other, and gives the earlier ones what was found', async () => {
    const { protection } = stand();
    const [cache, local] = [place('cache', () => null), place(undefined, () => undefined)];
    const db = place('db', () => 'kettle');
    expect(await protection.firstOf(steps(cache, local, db))).toBe('kettle');
    await settle();
    expect([cache.kept, local.kept, db.kept]).toEqual([['kettle'], ['kettle'], []]);
    const found = place('cache', () => 'warm');
    expect(await protection.firstOf(steps(found, local, db))).toBe('warm');
    expect(db.state.asked).toBe(1);
  });

  it('a known absence is an answer, and is not asked for again (BUG-E13)', async () => {
    const { protection } = stand();
    const cache = place('cache', () => undefined);
    const db = place('db', () => undefined);
    expect(await protection.firstOf(steps(cache, db))).toBeUndefined();
    await settle();
    expect(cache.kept).toEqual([ABSENT]);
    const knowing = place('cache', () => ABSENT);
    expect(await protection.firstOf(steps(knowing, db))).toBeUndefined();
    expect(db.state.asked).toBe(1);
  });

  it('a value that is too big leaves a marker, and is not offered again (BUG-E13)', async () => {
    const { protection } = stand();
    const big = 'x'.repeat(21);
    const cache = place('cache', () => undefined);
    const local = place(undefined, () => undefined);
    const db = place('db', () => big);
    expect(await protection.firstOf(steps(cache, local, db))).toBe(big);
    await settle();
    expect([cache.kept, local.kept]).toEqual([[TOO_BIG], [big]]);
    const marked = place('cache', () => TOO_BIG);
    expect(await protection.firstOf(steps(marked, db))).toBe(big);
    await settle();
    expect([marked.kept, protection.stats().cache]).toMatchObject([[], { bigValues: 1 }]);
    // An unknown value is not taken for absent.
    expect(
      await protection.firstOf(
        steps(
          cache,
          place('db', () => TOO_BIG),
        ),
      ),
    ).toBeUndefined();
    expect(cache.kept).toEqual([TOO_BIG]);
  });

  it('what fails, hangs or is not let through is passed over, and is not given anything', async () => {
    const { protection, clock, hidden } = stand();
    const hanging = place('cache', never);
    const local = place(undefined, failing());
    const db = place('db', () => 'kettle');
    const answer = protection.firstOf(steps(hanging, local, db));
    await clock.advanceAsync(52);
    expect(await answer).toBe('kettle');
    await settle();
    expect([hanging.kept, local.kept]).toEqual([[], []]);
    expect(hidden).toEqual([
      'cache DeadlineExceededError: resource "cache": no answer within 50 ms',
      '(fallback) Error: down',
    ]);
  });

  it('if the last one fails that is the answer, and nothing is kept', async () => {
    const { protection } = stand();
    const cache = place('cache', () => undefined);
    await expect(protection.firstOf(steps(cache, place('db', failing())))).rejects.toThrow('down');
    const gone = failing(new NotFound('gone'));
    // An error that is no failure is an answer, wherever it is given.
    const early = steps(place('db', gone), cache);
    await expect(protection.firstOf(early)).rejects.toThrow('gone');
    expect([cache.kept, cache.state.asked]).toEqual([[], 1]);
  });

  it('has one deadline for all of it', async () => {
    const { protection, clock } = stand();
    const left: number[] = [];
    const hanging: Step<string> = {
      resource: 'db',
      run: ({ remainingMs }) => {
        left.push(remainingMs);
        return never();
      },
    };
    const options = { deadlineMs: 120, label: 'product 1' };
    const all = [place('cache', never).step, hanging, place('cache', () => 'too late').step];
    const answer = protection.firstOf(all, options).catch(String);
    await clock.advanceAsync(52);
    expect(left[0]).toBeLessThanOrEqual(70);
    await clock.advanceAsync(72);
    expect(await answer).toContain('resource "db": no answer');
  });

  it('ends for a caller that has gone', async () => {
    const { protection } = stand();
    const controller = new AbortController();
    const db = place('db', () => 'kettle');
    const answer = protection.firstOf(steps(place('cache', never), db), {
      signal: controller.signal,
    });
    controller.abort('gone');
    await expect(answer).rejects.toBe('gone');
    expect(db.state.asked).toBe(0);
  });

  it('is done once for all who ask for the same key at the same time', async () => {
    const { protection, clock } = stand();
    let answer!: (value: string) => void;
    const find = (): Promise<string> => new Promise((resolve) => (answer = resolve));
    const db = place('db', find);
    const ask = (options: RunOptions = {}) =>
      protection.firstOf(steps(db), { key: 'product 1', ...options });
    const controller = new AbortController();
    const first = ask({ signal: controller.signal }).catch(String);
    const [second, hurried] = [ask(), ask({ deadlineMs: 20 }).catch(String)];
    // A caller gives up for itself alone.
    controller.abort('gone');
    await clock.advanceAsync(22);
    expect([await first, await hurried]).toEqual([
      'gone',
      expect.stringContaining('no answer within 20 ms'),
    ]);
    answer('kettle');
    expect(await second).toBe('kettle');
    expect(db.state.asked).toBe(1);
    const again = ask();
    answer('pot');
    expect([await again, db.state.asked]).toEqual(['pot', 2]);
  });

  it('does not join one that would give up earlier than it', async () => {
    const { protection, clock } = stand();
    const local = place(undefined, never);
    const ask = (deadlineMs: number): void => {
      protection.firstOf(steps(local), { key: 'k', deadlineMs }).catch(() => {});
    };
    ask(10);
    // A caller that comes a little later has the same deadline.
    await clock.advanceAsync(9);
    ask(10);
    expect(local.state.asked).toBe(1);
    ask(30);
    expect(local.state.asked).toBe(2);
    // Later callers do not wait for work that hangs.
    await clock.advanceAsync(31);
    ask(30);
    expect(local.state.asked).toBe(3);
  });

  it('keeping that fails is a failure of the resource, and of nobody else', async () => {
    const { protection, hidden } = stand();
    const cache = { ...place('cache', () => undefined).step, keep: failing() };
    expect(await protection.firstOf([cache, place('db', () => 'kettle').step])).toBe('kettle');
    await settle();
    expect([hidden, protection.stats().cache]).toMatchObject([
      ['cache Error: down'],
      { failed: 1 },
    ]);
  });

  it.each<[unknown, unknown, string]>([
    [[], {}, 'firstOf.steps'],
    ['cache', {}, 'firstOf.steps'],
    [[{ resource: 'db' }], {}, 'firstOf.steps.0.run'],
    [[{ run: () => 1, keep: 5 }], {}, 'firstOf.steps.0.keep'],
    [[{ run: () => 1, name: 'x' }], {}, 'firstOf.steps.0.name'],
    [[{ run: () => 1 }, { resource: 'no', run: () => 1 }], {}, 'unknown resource "no"'],
    [[{ run: () => 1 }], { timeout: 5 }, 'firstOf.options.timeout'],
  ])(
    'is told of what cannot work before anything is asked: %j %j',
    async (wrong, options, text) => {
      const { protection } = stand();
      await expect(protection.firstOf(wrong as never, options as never)).rejects.toThrow(text);
    },
  );
});

describe('a local cache', () => {
  it('keeps values and markers, each for its time, and no more than so many', () => {
    const clock = new ManualClock();
    const cache = new LocalCache<string>({ ttl: '1m', markerTtl: '5s', maxEntries: 2 }, clock);
    cache.set('a', 'kettle');
    cache.set('b', ABSENT);
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual(['kettle', ABSENT, undefined]);
    clock.advance(5000);
    expect([cache.get('b'), cache.size]).toEqual([undefined, 1]);
    clock.advance(54_999);
    expect(cache.get('a')).toBe('kettle');
    clock.advance(1);
    expect(cache.get('a')).toBeUndefined();
    for (const key of ['a', 'b', 'c']) cache.set(key, key);
    expect([cache.size, cache.get('a'), cache.get('c')]).toEqual([2, undefined, 'c']);
    cache.delete('c');
    expect(cache.size).toBe(1);
  });

  it('keeps no long key, as callers may ask for what does not exist by any name', () => {
    const cache = new LocalCache<string>();
    const keyOf = (i: number): string => Buffer.alloc(16_384, `${i} `).toString();
    const heap = (): number => {
      globalThis.gc!();
      return process.memoryUsage().heapUsed;
    };
    const before = heap();
    for (let i = 0; i < 2000; i++) cache.set(keyOf(i), i % 2 === 0 ? ABSENT : `${i}`);
    expect(heap() - before).toBeLessThan(4 * 1024 * 1024);
    expect([cache.size, cache.get(keyOf(6)), cache.get(keyOf(7))]).toEqual([2000, ABSENT, '7']);
    cache.delete(keyOf(7));
    expect(cache.get(keyOf(7))).toBeUndefined();
  });

  it('says what cannot work', () => {
    expect(() => new LocalCache({ ttl: 'soon' as never })).toThrow('localCache.ttl');
    expect(() => new LocalCache({ maxEntries: 0 })).toThrow('localCache.maxEntries');
    expect(() => new LocalCache({ max: 5 } as never)).toThrow('localCache.max');
  });
});
