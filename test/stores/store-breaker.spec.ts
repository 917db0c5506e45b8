import { StoreUnavailableError } from 'nestjs-weir';
import { StoreBreaker } from '../../lib/stores/redis/store-breaker.js';
import { ManualClock, settle } from '../support/manual-clock.js';

const FAILURE = new StoreUnavailableError('no answer');

/** A breaker without jitter, before a store that answers probes when it is told to. */
class Switch {
  readonly clock = new ManualClock(0);
  readonly events: unknown[] = [];
  readonly probedAtMs: number[] = [];
  answers = false;
  readonly breaker = new StoreBreaker(
    this.clock,
    async () => {
      this.probedAtMs.push(this.clock.now() / 1000);
      if (!this.answers) throw FAILURE;
    },
    { opened: (reason) => this.events.push(reason), closed: () => this.events.push('closed') },
    () => 0,
  );

  /** A call that is begun now and fails so much later. */
  failAfter(ms: number): void {
    const begunAt = this.clock.now();
    this.clock.after(ms, () => this.breaker.failed(FAILURE, begunAt));
  }
}

describe('the breaker of a store', () => {
  it('opens at the third failure in a row, and says why, once', () => {
    const { breaker, clock, events } = new Switch();
    for (let i = 0; i < 2; i++) {
      clock.advance(1);
      breaker.failed(FAILURE, clock.now());
      expect(breaker.isOpen).toBe(false);
    }
    for (let i = 0; i < 3; i++) breaker.failed(FAILURE, clock.now());
    expect(breaker.isOpen).toBe(true);
    expect(events).toEqual([FAILURE]);
  });

  it('is patient with failures that are not in a row', () => {
    const { breaker, clock, events } = new Switch();
    for (let i = 0; i < 10; i++) {
      for (let twice = 0; twice < 2; twice++) {
        clock.advance(1);
        breaker.failed(FAILURE, clock.now());
      }
      breaker.succeeded();
    }
    expect([breaker.isOpen, events]).toEqual([false, []]);
  });

  it('counts the failures of calls that were on their way together as one', () => {
    const { breaker, clock, failAfter } = bound(new Switch());
    for (let call = 0; call < 20; call++) {
      failAfter(20);
      clock.advance(1);
    }
    clock.advance(20);
    expect(breaker.isOpen).toBe(false);
  });

  it('counts a call that was begun when the last failure was already known', () => {
    const { breaker, clock, failAfter } = bound(new Switch());
    failAfter(20);
    for (let ms = 0; ms < 60; ms++) {
      clock.advance(1);
      failAfter(20);
      // Known at 20; one begun then is known at 40, and one begun at 40 at 60.
      expect(breaker.isOpen).toBe(clock.now() >= 60_000);
    }
  });

  it('opens at once where there is no doubt', () => {
    const { breaker, events } = new Switch();
    breaker.open(FAILURE);
    breaker.open(new StoreUnavailableError('again'));
    breaker.failed(FAILURE, 0);
    expect(breaker.isOpen).toBe(true);
    expect(events).toEqual([FAILURE]);
  });

  it('probes at intervals that double up to two seconds, one at a time', async () => {
    const { breaker, clock, probedAtMs } = new Switch();
    breaker.open(FAILURE);
    await clock.advanceAsync(8000);
    expect(probedAtMs).toEqual([100, 300, 700, 1500, 3100, 5100, 7100]);
    expect(breaker.isOpen).toBe(true);
  });

  it('closes when a probe is answered, and starts to count anew', async () => {
    const subject = new Switch();
    const { breaker, clock, events } = subject;
    for (let i = 0; i < 3; i++) breaker.failed(FAILURE, clock.now());
    subject.answers = true;
    await clock.advanceAsync(100);
    expect(breaker.isOpen).toBe(false);
    expect(events).toEqual([FAILURE, 'closed']);
    expect(clock.pending).toBe(0);
    for (let i = 0; i < 2; i++) breaker.failed(FAILURE, clock.now());
    expect(breaker.isOpen).toBe(false);
    breaker.failed(FAILURE, clock.now());
    expect(breaker.isOpen).toBe(true);
  });

  it('does not wait out the interval when it hears that the store may be back', async () => {
    const subject = new Switch();
    const { breaker, clock, probedAtMs } = subject;
    breaker.open(FAILURE);
    await clock.advanceAsync(4000);
    subject.answers = true;
    breaker.hint();
    await clock.advanceAsync(0);
    expect(probedAtMs.at(-1)).toBe(4000);
    expect(breaker.isOpen).toBe(false);
  });

  it('stopped, it neither probes nor tells', async () => {
    const { breaker, clock, events, probedAtMs } = new Switch();
    breaker.open(FAILURE);
    breaker.stop();
    expect(clock.pending).toBe(0);
    await clock.advanceAsync(5000);
    await settle();
    expect([probedAtMs, events]).toEqual([[], [FAILURE]]);
  });
});

function bound(subject: Switch): Switch {
  return Object.assign(subject, { failAfter: subject.failAfter.bind(subject) });
}
