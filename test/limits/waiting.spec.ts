import { type ExecutionContext } from '@nestjs/common';
import { type Transport } from '../../lib/requests/transport.js';
import { Waiting } from '../../lib/limits/waiting.js';
import { type Decision } from '../../lib/limiter/decision.js';
import { type Acquire, type RateLimiter } from '../../lib/limiter/rate-limiter.js';
import { ManualClock } from '../support/manual-clock.js';

const REQUEST: Acquire = { policy: 'shaped', key: 'k' };
const DECISION = { allowed: true, delayMs: 10, source: 'fallback' } as Decision;
const CONTEXT = {} as ExecutionContext;

describe('a request that is held back', () => {
  const clock = new ManualClock();
  const refunded: Acquire[] = [];
  let listeners: Set<() => void>;
  const decisions: (Decision | undefined)[] = [];
  const limiter = {
    refund: (request: Acquire, decision?: Decision) => {
      refunded.push(request);
      decisions.push(decision);
    },
  };
  const waiting = new Waiting(limiter as unknown as RateLimiter, clock);

  beforeEach(() => {
    refunded.length = 0;
    decisions.length = 0;
    listeners = new Set();
  });

  const listen = (callback: () => void): (() => void) => {
    listeners.add(callback);
    return () => listeners.delete(callback);
  };
  const hold = (whenAborted: (callback: () => void) => () => void): Promise<boolean> => {
    const transport = { whenAborted: (_: unknown, callback: () => void) => whenAborted(callback) };
    return waiting.hold(DECISION, REQUEST, CONTEXT, transport as unknown as Transport);
  };

  it('goes when its time has come, and nobody listens any more', async () => {
    const held = hold(listen);
    clock.advance(10);
    expect([await held, listeners.size, refunded]).toEqual([true, 0, []]);
  });

  it('does not go if its caller leaves, and gives its tokens back to where they came from', async () => {
    const held = hold(listen);
    for (const leave of listeners) leave();
    expect([await held, listeners.size, clock.pending, refunded]).toEqual([false, 0, 0, [REQUEST]]);
    expect(decisions).toEqual([DECISION]);
  });

  it('does not go if its caller has left before, and that is told at once', async () => {
    const held = hold((callback) => {
      const stop = listen(callback);
      callback();
      return stop;
    });
    expect([await held, listeners.size, clock.pending, refunded]).toEqual([false, 0, 0, [REQUEST]]);
    clock.advance(10);
    expect(refunded).toEqual([REQUEST]);
  });

  it('gives its tokens back once, however often it is told', async () => {
    const held = hold(listen);
    const [leave] = listeners;
    leave!();
    leave!();
    await held;
    expect(refunded).toEqual([REQUEST]);
  });
});
