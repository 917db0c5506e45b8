import { createRateLimiter, type Decision } from 'nestjs-weir';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import { WaitingLine } from '../../lib/limiter/waiting-line.js';
import { type WeirRateLimiter } from '../../lib/limiter/weir-rate-limiter.js';
import { Bench, now } from '../support/limiters.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { statesOf, Waiter } from '../support/waiters.js';

function drained(policy: ConstructorParameters<typeof Bench>[0]) {
  const bench = new Bench(policy);
  while (bench.take().allowed);
  return { bench, clock: bench.clock, idle: bench.clock.pending };
}

/** Whole tokens in the bucket of the key `k`, of which a closed limiter no longer tells. */
function tokensIn({ limiter, clock }: Bench): number {
  const [table] = (limiter as WeirRateLimiter)['memory']['tables'];
  const outcome = new Outcome();
  const { capacity, perToken } = table!.limit;
  outcome.nowMicros = clock.now();
  table!.peek('k', capacity, outcome);
  return outcome.allowed ? capacity : Math.floor(outcome.level / perToken);
}

describe('waiters for one key', () => {
  it('V-D13: three are served in the order in which they came, 100 ms apart', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const waiters = [1, 2, 3].map(() => new Waiter(bench));
    await clock.advanceAsync(100);
    expect(await statesOf(...waiters)).toEqual(['granted', 'waiting', 'waiting']);
    await clock.advanceAsync(100);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'waiting']);
    await clock.advanceAsync(100);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'granted']);
    expect(clock.pending).toBe(idle);
  });

  it('BUG-D07: one that wants much is not starved by those behind that want little', async () => {
    const { bench, clock } = drained({ rate: 10, burst: 10 });
    const large = new Waiter(bench, { cost: 10 });
    const small = Array.from({ length: 5 }, () => new Waiter(bench));
    await clock.advanceAsync(900);
    expect(await statesOf(large, small[0]!)).toEqual(['waiting', 'waiting']);
    await clock.advanceAsync(100);
    expect(await statesOf(large, small[0]!)).toEqual(['granted', 'waiting']);
    await clock.advanceAsync(500);
    expect(await statesOf(...small)).toEqual(small.map(() => 'granted'));
  });

  it('do not hold up other keys, tiers or policies', async () => {
    const { bench } = drained({ rate: 10, tiers: { vip: { rate: 10 } } });
    const stuck = new Waiter(bench);
    const key = new Waiter(bench, { key: 'other' });
    const tier = new Waiter(bench, { tier: 'vip' });
    expect(await statesOf(stuck, key, tier)).toEqual(['waiting', 'granted', 'granted']);
  });

  it('are served several at a time when tokens come faster than timers', async () => {
    const { bench, clock } = drained({ rate: 10_000, burst: 100 });
    const waiters = Array.from({ length: 50 }, () => new Waiter(bench));
    await clock.advanceAsync(5);
    expect(await statesOf(...waiters)).toEqual(waiters.map(() => 'granted'));
  });

  it('move up when the first gives up', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 10 });
    const [large, small] = [new Waiter(bench, { cost: 10 }), new Waiter(bench)];
    await clock.advanceAsync(300);
    large.abort();
    expect(await statesOf(large, small)).toEqual(['rejected', 'granted']);
    expect(bench.peek().remaining).toBe(2);
    expect(clock.pending).toBe(idle);
  });

  it('stay in order when one in the middle gives up', async () => {
    const { bench, clock } = drained({ rate: 10, burst: 1 });
    const waiters = [1, 2, 3].map(() => new Waiter(bench));
    waiters[1]!.abort();
    await clock.advanceAsync(200);
    expect(await statesOf(...waiters)).toEqual(['granted', 'rejected', 'granted']);
  });
});

describe('the length of a line', () => {
  it('is bounded: one too many is refused at once', async () => {
    const { bench, clock } = drained({ rate: 10, burst: 1, maxWaiters: 2 });
    const waiters = [1, 2, 3].map(() => new Waiter(bench));
    expect(await statesOf(...waiters)).toEqual(['waiting', 'waiting', 'rejected']);
    expect(waiters[2]!.error).toMatchObject({
      code: 'TOO_MANY_WAITERS',
      policy: 'p',
      maxWaiters: 2,
    });
    await clock.advanceAsync(100);
    const next = new Waiter(bench);
    expect(await statesOf(next)).toEqual(['waiting']);
  });

  it('is of those who wait: callers whose tokens are there are not refused', async () => {
    const bench = new Bench({ rate: 10, maxWaiters: 1 });
    const waiters = Array.from({ length: 10 }, () => new Waiter(bench));
    expect(await statesOf(...waiters)).toEqual(waiters.map(() => 'granted'));
  });
});

describe('a timeout in line', () => {
  it('fails at once if even the first in line will be served later', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const first = new Waiter(bench);
    const second = new Waiter(bench, {}, { timeoutMs: 99 });
    expect(await statesOf(first, second)).toEqual(['waiting', 'rejected']);
    expect(second.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT', timeoutMs: 99 });
    expect(clock.pending).toBe(idle + 1);
  });

  it('fails as soon as its turn has come and it is clear that it cannot be met', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const waiters = [new Waiter(bench), new Waiter(bench, {}, { timeoutMs: 150 })];
    await clock.advanceAsync(100);
    expect(await statesOf(...waiters)).toEqual(['granted', 'rejected']);
    expect(clock.pending).toBe(idle);
  });

  it('fails when it is over although the first in line still waits', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 1 });
    const waiters = [new Waiter(bench), new Waiter(bench, {}, { timeoutMs: 150 })];
    clock.jump(100_000);
    bench.take();
    await clock.advanceAsync(49);
    expect(await statesOf(...waiters)).toEqual(['waiting', 'waiting']);
    await clock.advanceAsync(1);
    expect(await statesOf(...waiters)).toEqual(['waiting', 'rejected']);
    await clock.advanceAsync(50);
    expect(await statesOf(...waiters)).toEqual(['granted', 'rejected']);
    expect(clock.pending).toBe(idle);
  });

  it.each([201, 200])('of %i ms is met when the turn comes after 200 ms', async (timeoutMs) => {
    const { bench, clock } = drained({ rate: 10, burst: 1 });
    const waiters = [new Waiter(bench), new Waiter(bench, {}, { timeoutMs })];
    await clock.advanceAsync(200);
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted']);
  });

  it('is not measured by somebody who has left the line', async () => {
    const bench = new Bench({ rate: 1, burst: 10 });
    bench.take(5);
    const [large, small] = [new Waiter(bench, { cost: 10 }), new Waiter(bench)];
    await settle();
    large.abort();
    const [next, hurried] = [new Waiter(bench), new Waiter(bench, {}, { timeoutMs: 100 })];
    expect(await statesOf(large, small, next, hurried)).toEqual([
      'rejected',
      'granted',
      'granted',
      'granted',
    ]);
  });
});

describe('tokens that come back before their time', () => {
  const K = { policy: 'p', key: 'k' };
  const SLOW = { rate: 1, period: '1d', burst: 10 } as const;

  it('go to the first in line at once', async () => {
    const { bench, clock, idle } = drained(SLOW);
    const waiter = new Waiter(bench);
    expect(await statesOf(waiter)).toEqual(['waiting']);
    now(bench.limiter.refund(K));
    expect(await statesOf(waiter)).toEqual(['granted']);
    expect(waiter.decision).toMatchObject({ allowed: true, remaining: 0 });
    expect(clock.pending).toBe(idle);
  });

  it('go to as many as there are tokens for, in their order', async () => {
    const { bench, clock, idle } = drained(SLOW);
    const waiters = [1, 2, 3].map(() => new Waiter(bench));
    await settle();
    now(bench.limiter.refund({ ...K, cost: 2 }));
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'waiting']);
    expect(clock.pending).toBe(idle + 1);
  });

  it('by a reset, go to the whole line', async () => {
    const { bench, clock, idle } = drained(SLOW);
    const waiters = [4, 6, 1].map((cost) => new Waiter(bench, { cost }));
    await settle();
    now(bench.limiter.reset(K));
    expect(await statesOf(...waiters)).toEqual(['granted', 'granted', 'waiting']);
    expect(clock.pending).toBe(idle + 1);
  });

  it('are not for those behind while the first still needs more, which comes sooner now', async () => {
    const { bench, clock, idle } = drained({ rate: 10, burst: 10 });
    const [large, small] = [new Waiter(bench, { cost: 10 }), new Waiter(bench)];
    await settle();
    now(bench.limiter.refund({ ...K, cost: 4 }));
    expect(await statesOf(large, small)).toEqual(['waiting', 'waiting']);
    expect(clock.pending).toBe(idle + 1);
    await clock.advanceAsync(599);
    expect(large.state).toBe('waiting');
    await clock.advanceAsync(1);
    expect(await statesOf(large, small)).toEqual(['granted', 'waiting']);
    await clock.advanceAsync(100);
    expect(small.state).toBe('granted');
  });

  it('count for the timeouts of those who come', async () => {
    const { bench } = drained({ rate: 10, burst: 10 });
    const large = new Waiter(bench, { cost: 10 });
    const early = new Waiter(bench, {}, { timeoutMs: 700 });
    expect(await statesOf(large, early)).toEqual(['waiting', 'rejected']);
    now(bench.limiter.refund({ ...K, cost: 4 }));
    const late = new Waiter(bench, {}, { timeoutMs: 700 });
    expect(await statesOf(large, late)).toEqual(['waiting', 'waiting']);
    await bench.clock.advanceAsync(700);
    expect(await statesOf(large, late)).toEqual(['granted', 'granted']);
  });

  it('of another key, tier or policy wake nobody', async () => {
    const policy = { ...SLOW, tiers: { vip: { rate: 1 } } };
    const clock = new ManualClock();
    const limiter = createRateLimiter({ policies: { p: policy, q: policy }, clock });
    for (const name of ['p', 'q']) now(limiter.allowN(name, 'k', 10));
    let ended = false;
    void limiter.acquire(K).finally(() => (ended = true));
    for (const other of [{ key: 'other' }, { tier: 'vip' }, { policy: 'q' }]) {
      now(limiter.refund({ ...K, ...other }));
      now(limiter.reset({ ...K, ...other }));
      await settle();
      expect(ended).toBe(false);
    }
    now(limiter.refund([{ policy: 'q', key: 'k' }, K]));
    await settle();
    expect(ended).toBe(true);
  });

  it('to nobody in particular stay in the bucket', () => {
    const { bench, clock, idle } = drained(SLOW);
    now(bench.limiter.refund({ ...K, cost: 3 }));
    expect(bench.peek().remaining).toBe(3);
    expect(clock.pending).toBe(idle);
  });
});

describe('the end of a line', () => {
  it('close rejects all who wait or are held back, returns what they had, and stops timers', async () => {
    const bench = new Bench({ algorithm: 'leaky-bucket', mode: 'shaper', rate: 10 });
    bench.take(5);
    const waiters = [new Waiter(bench), new Waiter(bench, { cost: 10 }), new Waiter(bench)];
    await settle();
    expect(bench.peek().remaining).toBe(4);
    expect(tokensIn(bench)).toBe(4);
    await bench.limiter.close();
    expect(await statesOf(...waiters)).toEqual(['rejected', 'rejected', 'rejected']);
    for (const { error } of waiters) expect(error).toMatchObject({ code: 'LIMITER_CLOSED' });
    expect(tokensIn(bench)).toBe(5);
    expect(bench.clock.pending).toBe(0);
  });

  it('close gives back once for each that had tokens, and nothing for those that had none', async () => {
    const clock = new ManualClock();
    const line = new WaitingLine(clock, () => {});
    const given: Decision[] = [];
    const ends: Promise<unknown>[] = [];
    const join = (decision: Decision) =>
      ends.push(
        line.join(
          {
            policy: 'p',
            maxWaiters: 10,
            isShared: false,
            buckets: ['p:k'],
            tryTake: () => decision,
            giveBack: (taken) => given.push(taken),
          },
          {},
        ),
      );
    const { limiter } = new Bench({ rate: 1 });
    const some = now(limiter.tryAcquire({ policy: 'p', key: 'k' }));
    const held = [100, 200].map((delayMs) => ({ ...some, delayMs }));
    for (const decision of [some, ...held]) join(decision);
    join({ ...some, allowed: false, retryAfterMs: 50 });
    line.close();
    line.close();
    const codes = (await Promise.allSettled(ends)).map((end) =>
      end.status === 'rejected' ? (end.reason as { code: string }).code : 'granted',
    );
    const closed = 'LIMITER_CLOSED';
    expect(codes).toEqual(['granted', closed, closed, closed]);
    expect(given).toEqual(held);
    expect(clock.pending).toBe(0);
  });

  it('close also finds who came in the very turn in which the line had emptied', async () => {
    const bench = new Bench({ algorithm: 'leaky-bucket', mode: 'shaper', rate: 10 });
    bench.take();
    const gone = new Waiter(bench);
    gone.abort();
    const late = new Waiter(bench);
    expect(await statesOf(gone, late)).toEqual(['rejected', 'waiting']);
    await bench.limiter.close();
    expect(await statesOf(late)).toEqual(['rejected']);
    expect(bench.clock.pending).toBe(0);
  });

  it('is told when its only caller had given up before: nothing is kept for that key', async () => {
    let ended = 0;
    const line = new WaitingLine(new ManualClock(), () => ended++);
    const task = {
      policy: 'p',
      maxWaiters: 1,
      isShared: false,
      buckets: ['p:k'],
      tryTake: () => now(new Bench({ rate: 1 }).limiter.peek({ policy: 'p', key: 'k' })),
      giveBack: () => {},
    };
    const signal = AbortSignal.abort(new Error('too late'));
    await expect(line.join(task, { signal })).rejects.toThrow('too late');
    expect(ended).toBe(1);
  });
});

describe('waiting for several policies', () => {
  it('takes all when the last has its tokens, and none before', async () => {
    const policies = { fast: { rate: 10, burst: 1 }, slow: { rate: 1, burst: 1 } };
    const clock = new ManualClock();
    const limiter = createRateLimiter({ policies, clock });
    const idle = clock.pending;
    const requests = ['fast', 'slow'].map((policy) => ({ policy, key: 'k' }));
    now(limiter.tryAcquire(requests));
    const waiting = limiter.acquire(requests);
    await clock.advanceAsync(999);
    expect(now(limiter.peek(requests[0]!)).remaining).toBe(1);
    await clock.advanceAsync(1);
    await expect(waiting).resolves.toMatchObject({ allowed: true });
    expect(now(limiter.peek(requests[0]!)).remaining).toBe(0);
    expect(clock.pending).toBe(idle);
  });
});

describe('a very long line', () => {
  const denied = { allowed: false, retryAfterMs: 1e9 } as Decision;

  /** Everybody waits for tokens that never come, and has an own way out. */
  function longLine(length: number) {
    const told = { ended: 0, refused: 0 };
    const line = new WaitingLine(new ManualClock(), () => told.ended++);
    const task = {
      ...{ policy: 'p', buckets: ['k'], maxWaiters: length, isShared: false },
      tryTake: () => denied,
      giveBack: () => undefined,
    };
    const exits = Array.from({ length }, () => {
      // A real signal takes longer to make than all of the rest.
      let leave = (): void => undefined;
      const addEventListener = (_: string, abort: () => void): void => void (leave = abort);
      const signal = { addEventListener, removeEventListener: () => undefined };
      line.join(task, { signal: signal as never }).catch(() => told.refused++);
      return () => leave();
    });
    return { line, told, exits };
  }

  it.each<[string, (exits: (() => void)[]) => (() => void)[]]>([
    ['from the end', (exits) => exits.toReversed()],
    ['from the front', (exits) => exits],
    ['from the middle', (exits) => [...exits.slice(50), ...exits.slice(0, 50)]],
  ])('is left by all, one after the other, %s', async (_, order) => {
    const { told, exits } = longLine(100);
    for (const leave of order(exits)) leave();
    await settle();
    expect(told).toEqual({ refused: 100, ended: 1 });
  });

  // While leaving meant to search the line for oneself, this took minutes.
  it('is left by many, and ends for the others with the limiter', async () => {
    const length = 300_000;
    const { line, told, exits } = longLine(length);
    for (const leave of exits.slice(length / 3).reverse()) leave();
    line.close();
    await settle();
    expect(told.refused).toBe(length);
  });

  it('does not look for a listener that has just been called', async () => {
    const { bench } = drained({ rate: 1 });
    const end = new AbortController();
    let removals = 0;
    end.signal.removeEventListener = () => void removals++;
    const acquired = bench.limiter.acquire({ policy: 'p', key: 'k' }, { signal: end.signal });
    end.abort(new Error('enough'));
    await expect(acquired).rejects.toThrow('enough');
    expect(removals).toBe(0);
  });

  it('does not count those who have left, nor serve them', async () => {
    const { bench, clock } = drained({ rate: 1, maxWaiters: 4 });
    const [first, second, third] = [1, 2, 3].map(() => new Waiter(bench));
    second!.abort();
    third!.abort();
    const later = [1, 2, 3].map(() => new Waiter(bench));
    expect(await statesOf(...later)).toEqual(['waiting', 'waiting', 'waiting']);
    expect(await statesOf(new Waiter(bench))).toEqual(['rejected']);
    await clock.advanceAsync(2000);
    expect(await statesOf(first!, ...later)).toEqual(['granted', 'granted', 'waiting', 'waiting']);
  });
});
