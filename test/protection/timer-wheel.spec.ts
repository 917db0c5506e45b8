import fc from 'fast-check';
import { Alarm, TimerWheel } from '../../lib/protection/timer-wheel.js';
import { ManualClock } from '../support/manual-clock.js';

class Noted extends Alarm {
  rungAtMs: number | undefined;
  onRing: () => void = () => {};

  constructor(private readonly clock: ManualClock) {
    super();
  }

  ring(): void {
    this.rungAtMs = this.clock.now() / 1000;
    this.onRing();
  }
}

function wheelOn(clock: ManualClock): { wheel: TimerWheel; at: (ms: number) => Noted } {
  const wheel = new TimerWheel(clock);
  const at = (ms: number): Noted => {
    const alarm = new Noted(clock);
    wheel.set(alarm, clock.now() + ms * 1000, clock.now());
    return alarm;
  };
  return { wheel, at };
}

describe('the timer wheel', () => {
  it('rings each alarm that was not cleared, never early and at most two ticks late', () => {
    const plan = fc.record({
      after: fc.integer({ min: 0, max: 50 }),
      ms: fc.integer({ min: 0, max: 9000 }),
      isCleared: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(plan, { maxLength: 40 }), fc.nat(5000), (plans, start) => {
        const clock = new ManualClock(start);
        const { wheel, at } = wheelOn(clock);
        const set = plans.map(({ after, ms, isCleared }) => {
          clock.advance(after);
          const alarm = at(ms);
          if (isCleared) wheel.clear(alarm);
          return { alarm, isCleared, dueMs: clock.now() / 1000 + ms };
        });
        clock.advance(12_000);
        for (const { alarm, isCleared, dueMs } of set) {
          if (isCleared) expect(alarm.rungAtMs).toBeUndefined();
          else {
            expect(alarm.rungAtMs).toBeGreaterThanOrEqual(dueMs);
            expect(alarm.rungAtMs).toBeLessThanOrEqual(dueMs + 4);
          }
        }
        expect([wheel.size, clock.pending]).toEqual([0, 0]);
      }),
      { numRuns: 100 },
    );
  });

  it('has one timer for any number of alarms, and none when there are none', () => {
    const clock = new ManualClock();
    const { wheel, at } = wheelOn(clock);
    const alarms = Array.from({ length: 1000 }, (_, n) => at(10 + n));
    expect(clock.pending).toBe(1);
    for (const alarm of alarms) wheel.clear(alarm);
    clock.advance(100);
    expect(clock.pending).toBe(0);
  });

  it('does not keep a finished process waiting for a far alarm', () => {
    const clock = new ManualClock();
    const { wheel, at } = wheelOn(clock);
    wheel.clear(at(60_000));
    clock.advance(100);
    expect(clock.pending).toBe(0);
  });

  it('catches up after the process has stood still', () => {
    const clock = new ManualClock();
    const { at } = wheelOn(clock);
    const alarms = [at(10), at(700), at(3000), at(60_000)];
    clock.jump(50_000_000);
    clock.advance(0);
    expect(alarms.map(({ rungAtMs }) => rungAtMs !== undefined)).toEqual([true, true, true, false]);
  });

  it('lets one that rings set itself anew and clear another that is due', () => {
    const clock = new ManualClock();
    const { wheel, at } = wheelOn(clock);
    const [first, second] = [at(10), at(10)];
    const clearOther = (other: Noted, own: Noted) => () => {
      wheel.clear(other);
      own.onRing = () => {};
      wheel.set(own, clock.now() + 20_000, clock.now());
    };
    first.onRing = clearOther(second, first);
    second.onRing = clearOther(first, second);
    clock.advance(15);
    const rung = [first, second].filter(({ rungAtMs }) => rungAtMs !== undefined);
    expect(rung).toHaveLength(1);
    clock.advance(30);
    expect(wheel.size).toBe(0);
  });
});
